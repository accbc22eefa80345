//! What every wire's tests run: streams split at every byte, damaged and cut; stories told over the wire that add up again.

use std::sync::Arc;

use futures_util::StreamExt;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use serde_json::{Map, Value, json};

pub(in crate::models) use super::decoder::Decoder;
use super::decoder::{AnswerReader, Chunks, DecodeError};
use crate::clock::SystemClock;
use crate::messages::{Message, MessageAccumulator, MessageKind};
use crate::models::decoding_kit::check_reader;
pub(in crate::models) use crate::models::decoding_kit::decoded;
use crate::models::{ChatModel, ModelCatalog, ModelEntry, ModelError, ModelRequest, ToolSchema};

/// What a model may say in one answer.
#[derive(Debug, Clone)]
pub(in crate::models) struct Story {
    pub(in crate::models) thought: String,
    pub(in crate::models) text: String,
    pub(in crate::models) calls: Vec<(String, Value)>,
    /// How many characters travel in one event.
    pub(in crate::models) step: usize,
}

impl Story {
    /// `text` in pieces as they travel.
    pub(in crate::models) fn pieces(&self, text: &str) -> Vec<String> {
        let letters: Vec<char> = text.chars().collect();
        letters
            .chunks(self.step)
            .map(|piece| piece.iter().collect())
            .collect()
    }
}

fn stories() -> impl Strategy<Value = Story> {
    let prose = "[a-zäß世🦌\n\" ]{0,20}";
    let args = prop::collection::btree_map("[a-zé]{1,4}", "[a-z\\\\\"世\n]{0,12}", 0..3)
        .prop_map(|args| json!(args));
    let calls = prop::collection::vec(("[a-z_]{1,8}", args), 0..4);
    (prose, prose, calls, 1..7_usize).prop_map(|(thought, text, calls, step)| Story {
        thought,
        text,
        calls,
        step,
    })
}

/// Every story that `tell` puts on the wire adds up to itself.
pub(in crate::models) fn stories_add_up<R: AnswerReader>(
    reader: impl Fn() -> R,
    tell: impl Fn(&Story) -> String,
) {
    let mut runner = TestRunner::new(ProptestConfig {
        cases: 300,
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    let outcome = runner.run(&stories(), |story| {
        let stream = tell(&story);
        let (chunks, fault) = decoded(&reader, &[stream.as_bytes()]);
        prop_assert_eq!(fault, None, "{}", stream);
        let streamed: String = chunks.iter().map(|chunk| chunk.content.as_str()).collect();
        let message = added_up(&chunks);
        prop_assert_eq!(
            (&streamed, message.content.text()),
            (&story.text, story.text.clone())
        );
        let thought = message
            .additional_kwargs
            .get("reasoning_content")
            .and_then(Value::as_str)
            .unwrap_or_default();
        prop_assert_eq!(thought, story.thought.as_str());
        let calls: Vec<(String, Value)> = message
            .tool_calls()
            .iter()
            .map(|call| (call.name.clone(), json!(call.args)))
            .collect();
        prop_assert_eq!(calls, story.calls.clone());
        let mut ids: Vec<&str> = message
            .tool_calls()
            .iter()
            .map(|call| call.id.as_str())
            .collect();
        ids.sort_unstable();
        ids.dedup();
        prop_assert_eq!(
            ids.len(),
            story.calls.len(),
            "each call has an id of its own"
        );
        Ok(())
    });
    outcome.unwrap();
}

/// The message of a whole stream.
pub(in crate::models) fn message<R: AnswerReader>(reader: impl Fn() -> R, stream: &str) -> Message {
    let (chunks, fault) = decoded(reader, &[stream.as_bytes()]);
    assert_eq!(fault, None);
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
    added_up(&chunks)
}

/// The message of an answer that was not streamed.
pub(in crate::models) fn message_of_whole<R: AnswerReader>(
    reader: impl Fn() -> R,
    body: &Value,
) -> Message {
    let (mut decoder, mut chunks) = (Decoder::new(reader()), Chunks::new());
    decoder
        .whole(body.to_string().as_bytes(), &mut chunks)
        .unwrap();
    added_up(&chunks)
}

fn added_up(chunks: &[crate::messages::MessageChunk]) -> Message {
    let mut sum = MessageAccumulator::new("m1");
    chunks.iter().for_each(|chunk| sum.push(chunk));
    sum.finish()
}

/// A recorded stream gives the same chunks however it is split, is told apart from its own beginnings, and damage to it
/// never makes the reader panic.
pub(in crate::models) fn survives_anything<R: AnswerReader>(
    reader: impl Fn() -> R,
    recorded: &str,
) {
    let bytes = recorded.as_bytes();
    let whole = decoded(&reader, &[bytes]);
    assert_eq!(whole.1, None);
    for at in 0..=bytes.len() {
        assert_eq!(
            decoded(&reader, &[&bytes[..at], &bytes[at..]]),
            whole,
            "split at {at}"
        );
        let (chunks, fault) = decoded(&reader, &[&bytes[..at]]);
        let ended = chunks
            .last()
            .is_some_and(|chunk| chunk.chunk_position == Some("last"));
        assert!(
            ended == fault.is_none() && fault.is_none_or(|fault| fault == DecodeError::Cut),
            "cut at {at}"
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

/// The model that a configuration with these keys gives.
pub(in crate::models) fn model(kind: &str, extra: Value) -> Arc<dyn ChatModel> {
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

/// A question.
pub(in crate::models) fn request(messages: Vec<Message>) -> ModelRequest {
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

/// The same with a tool to call.
pub(in crate::models) fn with_tool(request: ModelRequest) -> ModelRequest {
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

/// What came, added up, and the error that ended it.
pub(in crate::models) async fn ask(
    model: &dyn ChatModel,
    request: ModelRequest,
) -> (Message, Option<ModelError>) {
    let mut sum = MessageAccumulator::new("m1");
    let mut stream = match model.stream(request).await {
        Ok(stream) => stream,
        Err(error) => return (sum.finish(), Some(error)),
    };
    let mut fault = None;
    while let Some(item) = stream.next().await {
        match item {
            Ok(chunk) => sum.push(&chunk),
            Err(error) => fault = Some(error),
        }
    }
    (sum.finish(), fault)
}

/// Calls with unreadable arguments.
pub(in crate::models) fn invalid_calls(message: &Message) -> usize {
    match &message.kind {
        MessageKind::Ai {
            invalid_tool_calls, ..
        } => invalid_tool_calls.len(),
        _ => 0,
    }
}
