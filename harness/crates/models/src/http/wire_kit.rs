//! Shared tests of all wires: streams that are split at every byte, damaged or truncated, and
//! generated answers that are encoded and decoded again.

use std::sync::Arc;

use futures_util::StreamExt;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use serde_json::{Map, Value, json};

use super::chunks::Chunks;
pub(crate) use super::decoder::Decoder;
use super::decoder::{AnswerReader, DecodeError};
use crate::decoding_kit::check_reader;
pub(crate) use crate::decoding_kit::decoded;
use crate::{ChatModel, ModelCatalog, ModelEntry, ModelError, ModelRequest, ToolSchema};
use deerflow_core::clock::SystemClock;
use deerflow_core::messages::{Message, MessageAccumulator, MessageKind};

/// Generated content of one answer.
#[derive(Debug, Clone)]
pub(crate) struct GeneratedAnswer {
    pub(crate) thought: String,
    pub(crate) text: String,
    pub(crate) calls: Vec<(String, Value)>,
    /// Number of characters per event.
    pub(crate) step: usize,
}

impl GeneratedAnswer {
    /// Splits `text` into the pieces for events.
    pub(crate) fn pieces(&self, text: &str) -> Vec<String> {
        let chars: Vec<char> = text.chars().collect();
        chars
            .chunks(self.step)
            .map(|piece| piece.iter().collect())
            .collect()
    }
}

fn generated_answers() -> impl Strategy<Value = GeneratedAnswer> {
    let prose = "[a-zäß世🦌\n\" ]{0,20}";
    let args = prop::collection::btree_map("[a-zé]{1,4}", "[a-z\\\\\"世\n]{0,12}", 0..3)
        .prop_map(|args| json!(args));
    let calls = prop::collection::vec(("[a-z_]{1,8}", args), 0..4);
    (prose, prose, calls, 1..7_usize).prop_map(|(thought, text, calls, step)| GeneratedAnswer {
        thought,
        text,
        calls,
        step,
    })
}

/// Checks that decoding restores every generated answer that `encode` encodes.
pub(crate) fn check_round_trip<R: AnswerReader>(
    reader: impl Fn() -> R,
    encode: impl Fn(&GeneratedAnswer) -> String,
) {
    let mut runner = TestRunner::new(ProptestConfig {
        cases: 300,
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    let outcome = runner.run(&generated_answers(), |generated| {
        let stream = encode(&generated);
        let (chunks, failure) = decoded(&reader, &[stream.as_bytes()]);
        prop_assert_eq!(failure, None, "{}", stream);
        let streamed: String = chunks.iter().map(|chunk| chunk.content.as_str()).collect();
        let message = accumulated(&chunks);
        prop_assert_eq!(
            (&streamed, message.content.text()),
            (&generated.text, generated.text.clone())
        );
        let thought = message
            .additional_kwargs
            .get("reasoning_content")
            .and_then(Value::as_str)
            .unwrap_or_default();
        prop_assert_eq!(thought, generated.thought.as_str());
        let calls: Vec<(String, Value)> = message
            .tool_calls()
            .iter()
            .map(|call| (call.name.clone(), json!(call.args)))
            .collect();
        prop_assert_eq!(calls, generated.calls.clone());
        let mut ids: Vec<&str> = message
            .tool_calls()
            .iter()
            .map(|call| call.id.as_str())
            .collect();
        ids.sort_unstable();
        ids.dedup();
        prop_assert_eq!(
            ids.len(),
            generated.calls.len(),
            "each call has a unique id"
        );
        Ok(())
    });
    outcome.unwrap();
}

/// Returns the message of a complete stream.
pub(crate) fn message<R: AnswerReader>(reader: impl Fn() -> R, stream: &str) -> Message {
    let (chunks, failure) = decoded(reader, &[stream.as_bytes()]);
    assert_eq!(failure, None);
    assert_eq!(
        chunks.last().and_then(|chunk| chunk.chunk_position),
        Some("last")
    );
    let usage_at = chunks
        .iter()
        .position(|chunk| chunk.usage_metadata.is_some());
    assert!(
        usage_at.is_none_or(|at| at + 2 == chunks.len()),
        "usage stands alone before the last chunk"
    );
    accumulated(&chunks)
}

/// Returns the message of an answer that is not streamed.
pub(crate) fn message_of_whole<R: AnswerReader>(reader: impl Fn() -> R, body: &Value) -> Message {
    let (mut decoder, mut chunks) = (Decoder::new(reader()), Chunks::new());
    decoder
        .whole(body.to_string().as_bytes(), &mut chunks)
        .unwrap();
    accumulated(&chunks)
}

fn accumulated(chunks: &[deerflow_core::messages::MessageChunk]) -> Message {
    let mut accumulator = MessageAccumulator::new("m1");
    chunks.iter().for_each(|chunk| accumulator.push(chunk));
    accumulator.finish()
}

/// Checks that a recorded stream gives the same chunks for every split, that each prefix is
/// recognised as truncated, and that damage never makes the reader panic.
pub(crate) fn check_robustness<R: AnswerReader>(reader: impl Fn() -> R, recorded: &str) {
    let bytes = recorded.as_bytes();
    let whole = decoded(&reader, &[bytes]);
    assert_eq!(whole.1, None);
    for at in 0..=bytes.len() {
        assert_eq!(
            decoded(&reader, &[&bytes[..at], &bytes[at..]]),
            whole,
            "split at {at}"
        );
        let (chunks, failure) = decoded(&reader, &[&bytes[..at]]);
        let ended = chunks
            .last()
            .is_some_and(|chunk| chunk.chunk_position == Some("last"));
        assert!(
            ended == failure.is_none()
                && failure.is_none_or(|failure| failure == DecodeError::Truncated),
            "truncated at {at}"
        );
    }
    let single: Vec<&[u8]> = bytes.chunks(1).collect();
    assert_eq!(decoded(&reader, &single), whole);
    let edits = prop::collection::vec((any::<prop::sample::Index>(), 0..5_u8, any::<u8>()), 1..6);
    let mut runner = TestRunner::new(ProptestConfig {
        cases: 500,
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    let outcome = runner.run(&edits, |edits| {
        let mut bytes = bytes.to_vec();
        for (at, how, byte) in edits {
            let at = at.index(bytes.len().max(1)).min(bytes.len());
            match how {
                0 => bytes.truncate(at),
                1 if at < bytes.len() => bytes[at] = byte,
                2 => bytes.insert(at, b'\n'),
                3 if at < bytes.len() => drop(bytes.remove(at)),
                _ => bytes.extend_from_within(at..),
            }
        }
        check_reader(&reader, &bytes);
        Ok(())
    });
    outcome.unwrap();
}

/// Returns the model of an entry with these keys.
pub(crate) fn model(kind: &str, extra: Value) -> Arc<dyn ChatModel> {
    let entry = ModelEntry {
        supports_thinking: true,
        supports_reasoning_effort: true,
        extra: extra.as_object().unwrap().clone(),
        ..ModelEntry::new("entry", kind, "model-x")
    };
    ModelCatalog::new([entry], Arc::new(SystemClock))
        .get("entry")
        .unwrap()
}

/// Returns a request with these messages.
pub(crate) fn request(messages: Vec<Message>) -> ModelRequest {
    ModelRequest {
        message_id: "m1".to_owned(),
        system: Some("Rules.".into()),
        messages,
        tools: Arc::default(),
        thinking: false,
        reasoning_effort: None,
        overrides: Map::new(),
    }
}

/// Returns the request with a tool.
pub(crate) fn with_tool(request: ModelRequest) -> ModelRequest {
    let parameters = json!({"type": "object", "properties": {"path": {"type": "string"}}});
    ModelRequest {
        tools: [ToolSchema {
            name: "ls".to_owned(),
            description: "lists".to_owned(),
            parameters,
        }]
        .into(),
        ..request
    }
}

/// Calls the model. Returns the message that arrived, and the error that ended it.
pub(crate) async fn ask(
    model: &dyn ChatModel,
    request: ModelRequest,
) -> (Message, Option<ModelError>) {
    let mut accumulator = MessageAccumulator::new("m1");
    let mut stream = match model.stream(request).await {
        Ok(stream) => stream,
        Err(error) => return (accumulator.finish(), Some(error)),
    };
    let mut failure = None;
    while let Some(item) = stream.next().await {
        match item {
            Ok(chunk) => accumulator.push(&chunk),
            Err(error) => failure = Some(error),
        }
    }
    (accumulator.finish(), failure)
}

/// Returns the number of calls with invalid arguments.
pub(crate) fn invalid_calls(message: &Message) -> usize {
    match &message.kind {
        MessageKind::Ai {
            invalid_tool_calls, ..
        } => invalid_tool_calls.len(),
        _ => 0,
    }
}
