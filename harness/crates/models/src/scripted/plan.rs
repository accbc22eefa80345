//! Plans one turn of the scripted model: converts a request to a list of stream actions.

use std::time::Duration;

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::script::{Script, ScriptedCall};
use super::{prompt, texts};
use crate::classify::{ErrorReport, classify};
use crate::{ModelError, ModelErrorKind, ModelInfo, ModelRequest};
use deerflow_core::messages::{
    Message, MessageChunk, ToolCall, ToolCallChunk, UsageMetadata, kwargs,
};

/// Duration of a `[[hang]]`: the default idle timeout of the OpenAI adapter.
const HANG: Duration = Duration::from_secs(240);

/// Action of an answer stream.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum StreamAction {
    /// Waits.
    Wait(Duration),
    /// Sends a chunk.
    Send(Box<MessageChunk>),
    /// Fails. The last action of a turn.
    Fail(ModelError),
}

/// Failure of the first attempts only. The driver counts the attempts.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct FailFirstAttempts {
    /// Key that identifies attempts of the same request.
    pub(super) key: [u8; 32],
    /// Number of attempts that fail.
    pub(super) times: u32,
    /// Error of these attempts.
    pub(super) error: ModelError,
}

/// Planned turn.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Turn {
    /// Checked by the driver before it returns the first chunk.
    pub(super) fail_first: Option<FailFirstAttempts>,
    /// Actions in their order.
    pub(super) actions: Vec<StreamAction>,
}

/// Plans the answer to `request`.
pub(super) fn plan(info: &ModelInfo, request: &ModelRequest) -> Turn {
    let user_prompt = prompt::user_prompt(&request.messages);
    let fail = |kind, status, message: String| ModelError {
        model: info.name.clone(),
        kind,
        message,
        status,
        retry_after: None,
    };
    let script = match Script::parse(&user_prompt.text) {
        Ok(script) => expand_demo(script, request),
        Err(error) => {
            return Turn {
                actions: vec![StreamAction::Fail(fail(
                    ModelErrorKind::BadRequest,
                    None,
                    error.to_string(),
                ))],
                ..Turn::default()
            };
        }
    };
    let mut turn = Turn::default();
    if !script.delay.is_zero() {
        turn.actions.push(StreamAction::Wait(script.delay));
    }
    let mut writer = Writer {
        info,
        request,
        script: &script,
        actions: &mut turn.actions,
    };
    if let Some(calls) = pending_calls(&script, request, user_prompt.turns_since) {
        writer.calls(&calls);
        return turn;
    }
    if let Some(failure) = script.failure {
        let message = format!("scripted error {}", failure.status);
        let kind = classify(ErrorReport {
            status: Some(failure.status),
            code: "",
            message: &message,
        });
        let error = fail(kind, Some(failure.status), message);
        match failure.times {
            None => {
                turn.actions.push(StreamAction::Fail(error));
                return turn;
            }
            Some(times) => {
                let key = Sha256::digest(format!(
                    "{}\u{0}{}",
                    request.messages.len(),
                    user_prompt.text
                ))
                .into();
                turn.fail_first = Some(FailFirstAttempts { key, times, error });
            }
        }
    }
    let mut writer = Writer {
        info,
        request,
        script: &script,
        actions: &mut turn.actions,
    };
    if script.hang {
        writer.actions.push(StreamAction::Wait(HANG));
        writer.actions.push(StreamAction::Fail(fail(
            ModelErrorKind::Stalled,
            None,
            format!("no chunk for {} seconds", HANG.as_secs()),
        )));
    } else {
        writer.answer();
    }
    turn
}

/// Replaces a message without directives that requests a demonstration by the demo script, if tools
/// are offered.
fn expand_demo(script: Script, request: &ModelRequest) -> Script {
    if !script.directed
        && script.say.is_none()
        && !request.tools.is_empty()
        && texts::requests_demo(&script.plain_text)
    {
        return Script::parse(texts::DEMO).unwrap_or(script);
    }
    script
}

/// Returns the calls of the current step, or `None` if only the final answer remains. Ignores calls
/// of tools that are not offered: an auxiliary prompt that quotes a user's directives then gets a
/// text.
fn pending_calls(
    script: &Script,
    request: &ModelRequest,
    turns_since: usize,
) -> Option<Vec<ScriptedCall>> {
    let offered = |call: &&ScriptedCall| request.tools.iter().any(|tool| tool.name == call.tool);
    let steps = script
        .steps
        .iter()
        .map(|step| step.iter().filter(offered).cloned().collect::<Vec<_>>());
    steps.filter(|calls| !calls.is_empty()).nth(turns_since)
}

/// Builds the actions of one answer.
struct Writer<'a> {
    info: &'a ModelInfo,
    request: &'a ModelRequest,
    script: &'a Script,
    actions: &'a mut Vec<StreamAction>,
}

impl Writer<'_> {
    fn calls(&mut self, calls: &[ScriptedCall]) {
        let turn_id = hex::encode(Sha256::digest(format!(
            "{}\u{0}{}",
            self.request.message_id,
            self.request.messages.len()
        )));
        let mut word_count = 0;
        for (call, index) in calls.iter().zip(0..) {
            let id = format!("call_{}_{index}", &turn_id[..8]);
            word_count += count_words(&call.arguments) + 1;
            self.send(|chunk| {
                chunk.tool_calls = vec![ToolCall::new(id.clone(), call.tool.clone(), Map::new())];
                chunk.tool_call_chunks = vec![piece(index, Some(call.tool.clone()), Some(id), "")];
            });
            let chars = call.arguments.chars().count();
            let size = if self.script.frag {
                1
            } else {
                chars.div_ceil(2).max(1)
            };
            for part in split_evenly(&call.arguments, size) {
                self.send(|chunk| chunk.tool_call_chunks = vec![piece(index, None, None, part)]);
            }
        }
        self.close("tool_calls", word_count);
    }

    fn answer(&mut self) {
        for word in self.script.think.iter().flat_map(|text| split_words(text)) {
            self.send(|chunk| {
                chunk.additional_kwargs.insert(
                    kwargs::REASONING_CONTENT.to_owned(),
                    Value::String(word.to_owned()),
                );
            });
        }
        let text = texts::final_text(self.script, self.info);
        let pieces = match self.script.slow {
            Some(pace) if self.script.say.is_none() => {
                (0..pace.pieces).map(|k| format!("tok{k} ")).collect()
            }
            Some(pace) => {
                let size = text.chars().count().div_ceil(pace.pieces).max(1);
                split_evenly(&text, size).map(str::to_owned).collect()
            }
            None => split_words(&text).map(str::to_owned).collect::<Vec<_>>(),
        };
        let garbled_at = self.script.garbage.then_some(pieces.len() / 2);
        for (at, text) in pieces.iter().enumerate() {
            if self.script.cut.is_some_and(|cut| at >= cut) {
                return self.break_off("the stream was cut before its end");
            }
            if garbled_at == Some(at) {
                return self.break_off("a chunk of the stream is not valid JSON");
            }
            self.send(|chunk| chunk.content.clone_from(text));
            if let Some(pace) = self.script.slow.filter(|pace| !pace.gap.is_zero()) {
                self.actions.push(StreamAction::Wait(pace.gap));
            }
        }
        self.close(
            self.script.stop.as_deref().unwrap_or("stop"),
            pieces.len() as u64,
        );
    }

    /// Sends the usage in a separate chunk, then the closing chunk.
    fn close(&mut self, finish_reason: &str, word_count: u64) {
        let (input, output) = self
            .script
            .usage
            .unwrap_or_else(|| (count_request(self.request), word_count));
        let usage = UsageMetadata {
            input_tokens: input,
            output_tokens: output,
            total_tokens: input.saturating_add(output),
            ..UsageMetadata::default()
        };
        self.send(|chunk| chunk.usage_metadata = Some(usage));
        let facts = [
            ("finish_reason", finish_reason),
            ("model_name", &self.info.model),
            ("model_provider", &self.info.provider),
        ];
        self.send(|chunk| {
            chunk.response_metadata = facts
                .into_iter()
                .map(|(key, value)| (key.to_owned(), Value::String(value.to_owned())))
                .collect();
            chunk.chunk_position = Some("last");
        });
    }

    fn send(&mut self, fill: impl FnOnce(&mut MessageChunk)) {
        let mut chunk = MessageChunk::empty(self.request.message_id.clone());
        fill(&mut chunk);
        self.actions.push(StreamAction::Send(Box::new(chunk)));
    }

    fn break_off(&mut self, message: &str) {
        self.actions.push(StreamAction::Fail(ModelError {
            model: self.info.name.clone(),
            kind: ModelErrorKind::Transient,
            message: message.to_owned(),
            status: None,
            retry_after: None,
        }));
    }
}

fn piece(index: u32, name: Option<String>, id: Option<String>, args: &str) -> ToolCallChunk {
    ToolCallChunk {
        name,
        args: Some(args.to_owned()),
        id,
        index,
        kind: "tool_call_chunk",
    }
}

/// Returns the tokens of a text. The scripted model counts one token per word.
fn count_words(text: &str) -> u64 {
    text.split_whitespace().count() as u64
}

fn count_request(request: &ModelRequest) -> u64 {
    let message = |message: &Message| {
        let calls: u64 = message
            .tool_calls()
            .iter()
            .map(|call| 1 + call.args.len() as u64)
            .sum();
        count_words(&message.content.text()) + calls
    };
    request.system.as_deref().map_or(0, count_words)
        + request.messages.iter().map(message).sum::<u64>()
}

/// Splits a text into words, each with the white space after it.
fn split_words(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let word_end = rest.find(char::is_whitespace).unwrap_or(rest.len());
        let end = rest[word_end..]
            .find(|c: char| !c.is_whitespace())
            .map_or(rest.len(), |spaces| word_end + spaces);
        let (word, tail) = rest.split_at(end);
        rest = tail;
        (!word.is_empty()).then_some(word)
    })
}

/// Splits a text into pieces of `size` characters.
fn split_evenly(text: &str, size: usize) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let end = rest
            .char_indices()
            .nth(size)
            .map_or(rest.len(), |(at, _)| at);
        let (piece, tail) = rest.split_at(end);
        rest = tail;
        (!piece.is_empty()).then_some(piece)
    })
}
