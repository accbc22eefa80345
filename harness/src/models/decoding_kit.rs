//! What the decoders of provider answers promise for any bytes, as checks that fuzzers and tests feed. A broken promise panics.

use serde_json::Map;

use super::anthropic::Messages;
use super::gemini::GenerateContent;
use super::http::{
    AnswerReader, Chunks, DecodeError, Decoder, Endpoint, EventCutter, EventTooLong, Wire,
};
use super::ollama::Chat;
use super::openai::{ChatCompletions, Dialect};
use super::responses::Responses;
use super::{ModelEntry, ModelRequest};
use crate::messages::{
    Message, MessageAccumulator, MessageChunk, MessageKind, UsageMetadata, kwargs,
};

/// In how many places an answer is split in two, beside each of its bytes coming alone.
const SPLITS: usize = 8;
/// The id of the message that each answer becomes.
const MESSAGE: &str = "m1";

/// Chat completions, in the dialects whose answers are read differently.
pub fn chat_completions(answer: &[u8]) {
    for dialect in [
        Dialect::OPENAI,
        Dialect::MINIMAX,
        Dialect::MINDIE,
        Dialect::OPENROUTER,
    ] {
        check_wire(ChatCompletions::of(&entry(), dialect), answer);
    }
}

/// The responses API.
pub fn responses(answer: &[u8]) {
    check_wire(Responses::of(&entry(), Dialect::OPENAI.site), answer);
}

/// Anthropic messages.
pub fn anthropic(answer: &[u8]) {
    check_wire(Messages::of(&entry(), false), answer);
}

/// Gemini.
pub fn gemini(answer: &[u8]) {
    check_wire(GenerateContent::of(&entry()), answer);
}

/// Ollama's own API.
pub fn ollama(answer: &[u8]) {
    check_wire(Chat::of(&entry()), answer);
}

/// The cutter of events, of both kinds.
pub fn events(bytes: &[u8]) {
    for new in [EventCutter::default, EventCutter::of_lines] {
        let cut = |pieces: &[&[u8]]| {
            let (mut cutter, mut payloads) = (new(), Vec::new());
            for piece in pieces {
                let kept: Result<(), EventTooLong> = cutter.push(piece, |payload| {
                    payloads.push(payload.to_vec());
                    Ok(())
                });
                kept.expect("a short stream has no long event");
            }
            (payloads, cutter.rest())
        };
        let whole = cut(&[bytes]);
        assert!(
            whole.0.iter().map(Vec::len).sum::<usize>() <= bytes.len(),
            "payloads are made of the stream's bytes alone"
        );
        each_split(bytes, |pieces| assert_eq!(cut(pieces), whole));
    }
}

pub(super) fn entry() -> ModelEntry {
    let mut entry = ModelEntry::new("entry", "openai", "model-x");
    entry
        .extra
        .insert("base_url".to_owned(), "http://provider.test/v1".into());
    entry
}

/// All that is promised of a wire's answers, streamed or not.
fn check_wire<W: Wire>(way: Result<(W, Endpoint), String>, answer: &[u8]) {
    let (wire, endpoint) = way.expect("an entry with an address has a way to it");
    check_reader(|| wire.reader(MESSAGE), answer);
    let mut chunks = Chunks::new();
    let streamed = decoded(|| wire.reader(MESSAGE), &[answer]);
    let whole = Decoder::new(wire.reader(MESSAGE)).whole(answer, &mut chunks);
    for (chunks, ended) in [(streamed.0, streamed.1.is_none()), (chunks, whole.is_ok())] {
        let message = check_sum(&chunks);
        assert!(
            !ended || is_closed(&chunks),
            "an answer without a fault has an end"
        );
        // What was read can be said again.
        let _call = wire.call(&request(message), &Map::new(), &endpoint, None);
    }
}

/// What is promised of a reader for any stream: however it is split it gives the same chunks, and it says its end exactly when
/// there is no fault.
pub(super) fn check_reader<R: AnswerReader>(reader: impl Fn() -> R, stream: &[u8]) {
    let whole = decoded(&reader, &[stream]);
    assert_eq!(
        is_closed(&whole.0),
        whole.1.is_none(),
        "an end or a fault, and not both"
    );
    let last = whole
        .0
        .iter()
        .filter(|chunk| chunk.chunk_position.is_some())
        .count();
    assert!(last <= 1, "an answer ends once");
    each_split(stream, |pieces| assert_eq!(decoded(&reader, pieces), whole));
}

/// The chunks of a stream in pieces, and the fault that ended it.
pub(super) fn decoded<R: AnswerReader>(
    reader: impl Fn() -> R,
    pieces: &[&[u8]],
) -> (Chunks, Option<DecodeError>) {
    let (mut decoder, mut chunks) = (Decoder::new(reader()), Chunks::new());
    for piece in pieces {
        if let Err(error) = decoder.push(piece, &mut chunks) {
            return (chunks, Some(error));
        }
    }
    let fault = decoder.end(&mut chunks).err();
    (chunks, fault)
}

/// The message that `chunks` add up to: it says what they said, and each of its calls has an id of its own.
fn check_sum(chunks: &[MessageChunk]) -> Message {
    let mut sum = MessageAccumulator::new(MESSAGE);
    chunks.iter().for_each(|chunk| sum.push(chunk));
    let _so_far = sum.so_far();
    let message = sum.finish();
    let text: String = chunks.iter().map(|chunk| chunk.content.as_str()).collect();
    assert_eq!(message.content.text(), text);
    let thoughts: String = chunks
        .iter()
        .filter_map(|chunk| {
            chunk
                .additional_kwargs
                .get(kwargs::REASONING_CONTENT)?
                .as_str()
        })
        .collect();
    let kept = message
        .additional_kwargs
        .get(kwargs::REASONING_CONTENT)
        .and_then(|kept| kept.as_str())
        .unwrap_or_default();
    assert_eq!(kept, thoughts);
    let MessageKind::Ai {
        tool_calls,
        invalid_tool_calls,
        ..
    } = &message.kind
    else {
        panic!("an answer is the model's message")
    };
    let invalid = invalid_tool_calls
        .iter()
        .filter_map(|call| call.id.as_deref());
    let mut ids: Vec<&str> = tool_calls
        .iter()
        .map(|call| call.id.as_str())
        .chain(invalid)
        .collect();
    let announced = chunks
        .iter()
        .map(|chunk| chunk.tool_calls.len())
        .sum::<usize>();
    assert_eq!(
        (ids.len(), tool_calls.len() + invalid_tool_calls.len()),
        (announced, announced),
        "each call is announced once"
    );
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), announced, "each call has an id of its own");
    let costs = message.usage().map_or([0; 4], |usage| {
        [
            usage.input_tokens,
            usage.output_tokens,
            usage.total(),
            usage.cache_read(),
        ]
    });
    assert!(
        costs.iter().all(|count| *count <= 2 * UsageMetadata::MOST),
        "costs can be added up"
    );
    message
}

fn is_closed(chunks: &[MessageChunk]) -> bool {
    chunks
        .last()
        .is_some_and(|chunk| chunk.chunk_position == Some("last"))
}

/// Shows `check` the bytes one by one, and split in two at some places.
fn each_split(bytes: &[u8], check: impl Fn(&[&[u8]])) {
    check(&bytes.chunks(1).collect::<Vec<_>>());
    for at in (1..bytes.len()).step_by((bytes.len() / SPLITS).max(1)) {
        let (before, after) = bytes.split_at(at);
        check(&[before, after]);
    }
}

fn request(said: Message) -> ModelRequest {
    ModelRequest {
        message_id: "m2".to_owned(),
        system: None,
        messages: vec![Message::human("Go on."), said],
        tools: [].into(),
        thinking: true,
        reasoning_effort: None,
        overrides: Map::new(),
    }
}
