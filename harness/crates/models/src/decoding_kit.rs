//! Checks of the decoders of provider answers for arbitrary bytes, used by fuzz targets and tests.
//! A violated guarantee panics.

use serde_json::Map;

use super::anthropic::Messages;
use super::gemini::GenerateContent;
use super::http::{
    AnswerReader, Chunks, DecodeError, Decoder, Endpoint, EventSplitter, EventTooLong, Wire,
};
use super::ollama::Chat;
use super::openai::{ChatCompletions, Dialect};
use super::responses::Responses;
use super::{ModelEntry, ModelRequest};
use deerflow_core::messages::{
    Message, MessageAccumulator, MessageChunk, MessageKind, UsageMetadata, kwargs,
};

/// Number of positions at which an answer is split in two, in addition to a split at each byte.
const SPLITS: usize = 8;
/// Id of the message that each answer becomes.
const MESSAGE: &str = "m1";

/// Checks chat completions, in the dialects whose answers are decoded differently.
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

/// Checks the responses API.
pub fn responses(answer: &[u8]) {
    check_wire(Responses::of(&entry(), Dialect::OPENAI.defaults), answer);
}

/// Checks Anthropic messages.
pub fn anthropic(answer: &[u8]) {
    check_wire(Messages::of(&entry(), false), answer);
}

/// Checks Gemini.
pub fn gemini(answer: &[u8]) {
    check_wire(GenerateContent::of(&entry()), answer);
}

/// Checks Ollama's own API.
pub fn ollama(answer: &[u8]) {
    check_wire(Chat::of(&entry()), answer);
}

/// Checks the splitter of events, for server-sent events and for lines.
pub fn events(bytes: &[u8]) {
    for new in [EventSplitter::default, EventSplitter::lines] {
        let cut = |pieces: &[&[u8]]| {
            let (mut splitter, mut payloads) = (new(), Vec::new());
            for piece in pieces {
                let reasoning: Result<(), EventTooLong> = splitter.push(piece, |payload| {
                    payloads.push(payload.to_vec());
                    Ok(())
                });
                reasoning.expect("a short stream has no oversized event");
            }
            (payloads, splitter.rest())
        };
        let whole = cut(&[bytes]);
        assert!(
            whole.0.iter().map(Vec::len).sum::<usize>() <= bytes.len(),
            "payloads contain no bytes from outside the stream"
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

/// Checks all guarantees for a wire's answers, streamed or not.
fn check_wire<W: Wire>(wire_and_endpoint: Result<(W, Endpoint), String>, answer: &[u8]) {
    let (wire, endpoint) = wire_and_endpoint.expect("an entry with an address has an endpoint");
    check_reader(|| wire.reader(MESSAGE), answer);
    let mut chunks = Chunks::new();
    let streamed = decoded(|| wire.reader(MESSAGE), &[answer]);
    let whole = Decoder::new(wire.reader(MESSAGE)).whole(answer, &mut chunks);
    for (chunks, ended) in [(streamed.0, streamed.1.is_none()), (chunks, whole.is_ok())] {
        let message = check_accumulated(&chunks);
        assert!(
            !ended || is_closed(&chunks),
            "an answer without an error has an end"
        );
        // A decoded message can be sent again.
        let _call = wire.call(&request(message), &Map::new(), &endpoint, None);
    }
}

/// Checks the guarantees of a reader for any stream: each split gives the same chunks, and there is
/// a closing chunk exactly if there is no error.
pub(super) fn check_reader<R: AnswerReader>(reader: impl Fn() -> R, stream: &[u8]) {
    let whole = decoded(&reader, &[stream]);
    assert_eq!(
        is_closed(&whole.0),
        whole.1.is_none(),
        "either an end or an error"
    );
    let last = whole
        .0
        .iter()
        .filter(|chunk| chunk.chunk_position.is_some())
        .count();
    assert!(last <= 1, "an answer ends once");
    each_split(stream, |pieces| assert_eq!(decoded(&reader, pieces), whole));
}

/// Returns the chunks of a stream in pieces, and the error that ended it.
pub(crate) fn decoded<R: AnswerReader>(
    reader: impl Fn() -> R,
    pieces: &[&[u8]],
) -> (Chunks, Option<DecodeError>) {
    let (mut decoder, mut chunks) = (Decoder::new(reader()), Chunks::new());
    for piece in pieces {
        if let Err(error) = decoder.push(piece, &mut chunks) {
            return (chunks, Some(error));
        }
    }
    let failure = decoder.end(&mut chunks).err();
    (chunks, failure)
}

/// Returns the message that the accumulated `chunks` form. Checks that it has their text and that
/// each of its calls has a unique id.
fn check_accumulated(chunks: &[MessageChunk]) -> Message {
    let mut accumulator = MessageAccumulator::new(MESSAGE);
    chunks.iter().for_each(|chunk| accumulator.push(chunk));
    let _so_far = accumulator.so_far();
    let message = accumulator.finish();
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
    let reasoning = message
        .additional_kwargs
        .get(kwargs::REASONING_CONTENT)
        .and_then(|reasoning| reasoning.as_str())
        .unwrap_or_default();
    assert_eq!(reasoning, thoughts);
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
    assert_eq!(ids.len(), announced, "each call has a unique id");
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
        "usage counts do not overflow when added"
    );
    message
}

fn is_closed(chunks: &[MessageChunk]) -> bool {
    chunks
        .last()
        .is_some_and(|chunk| chunk.chunk_position == Some("last"))
}

/// Calls `check` with the bytes one by one, and split in two at several positions.
fn each_split(bytes: &[u8], check: impl Fn(&[&[u8]])) {
    check(&bytes.chunks(1).collect::<Vec<_>>());
    for at in (1..bytes.len()).step_by((bytes.len() / SPLITS).max(1)) {
        let (before, after) = bytes.split_at(at);
        check(&[before, after]);
    }
}

fn request(message: Message) -> ModelRequest {
    ModelRequest {
        message_id: "m2".to_owned(),
        system: None,
        messages: vec![Message::human("Go on."), message],
        tools: [].into(),
        thinking: true,
        reasoning_effort: None,
        overrides: Map::new(),
    }
}
