//! Decides one turn of the scripted model: from a request to the beats that the driver plays.

use std::time::Duration;

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::script::{Script, ScriptedCall};
use super::{audience, copy};
use crate::messages::{Message, MessageChunk, ToolCall, ToolCallChunk, UsageMetadata, kwargs};
use crate::models::classify::{Refusal, classify};
use crate::models::{ModelError, ModelErrorKind, ModelInfo, ModelRequest};

/// How long a `[[hang]]` stays silent: what the OpenAI adapter would wait for a next chunk by default.
const HANG: Duration = Duration::from_secs(240);

/// One thing to do on the way through an answer.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Beat {
    /// Let time pass.
    Wait(Duration),
    /// Give a chunk.
    Send(Box<MessageChunk>),
    /// Fail; nothing comes after it.
    Fail(ModelError),
}

/// A refusal that only the first tries meet; the driver counts them.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct FirstTries {
    /// What the tries have in common.
    pub(super) key: [u8; 32],
    /// How many of them fail.
    pub(super) times: u32,
    /// How they fail.
    pub(super) error: ModelError,
}

/// One planned turn.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Turn {
    /// Checked by the driver before the beats.
    pub(super) first_tries: Option<FirstTries>,
    /// What to play.
    pub(super) beats: Vec<Beat>,
}

/// Plans the answer to `request`.
pub(super) fn plan(info: &ModelInfo, request: &ModelRequest) -> Turn {
    let cue = audience::cue(&request.messages);
    let fail = |kind, status, message: String| ModelError {
        model: info.name.clone(),
        kind,
        message,
        status,
        retry_after: None,
    };
    let script = match Script::parse(&cue.text) {
        Ok(script) => rehearsed(script, request),
        Err(error) => {
            return Turn {
                beats: vec![Beat::Fail(fail(
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
        turn.beats.push(Beat::Wait(script.delay));
    }
    let mut writer = Writer {
        info,
        request,
        script: &script,
        beats: &mut turn.beats,
    };
    if let Some(calls) = due_calls(&script, request, cue.turns_since) {
        writer.calls(&calls);
        return turn;
    }
    if let Some(failure) = script.failure {
        let message = format!("scripted error {}", failure.status);
        let kind = classify(Refusal {
            status: Some(failure.status),
            code: "",
            message: &message,
        });
        let error = fail(kind, Some(failure.status), message);
        match failure.times {
            None => {
                turn.beats.push(Beat::Fail(error));
                return turn;
            }
            Some(times) => {
                let key =
                    Sha256::digest(format!("{}\u{0}{}", request.messages.len(), cue.text)).into();
                turn.first_tries = Some(FirstTries { key, times, error });
            }
        }
    }
    let mut writer = Writer {
        info,
        request,
        script: &script,
        beats: &mut turn.beats,
    };
    if script.hang {
        writer.beats.push(Beat::Wait(HANG));
        writer.beats.push(Beat::Fail(fail(
            ModelErrorKind::Stalled,
            None,
            format!("no chunk for {} seconds", HANG.as_secs()),
        )));
    } else {
        writer.answer();
    }
    turn
}

/// A message without directives that asks for a demonstration is given one, where tools are offered.
fn rehearsed(script: Script, request: &ModelRequest) -> Script {
    if !script.directed
        && script.say.is_none()
        && !request.tools.is_empty()
        && copy::asks_for_demo(&script.words)
    {
        return Script::parse(copy::DEMO).unwrap_or(script);
    }
    script
}

/// The calls of the step that is due; none when only the final answer is left. Calls of tools that are not offered do not
/// count, so that side prompts that quote the user get a text.
fn due_calls(
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

/// Writes the beats of one answer.
struct Writer<'a> {
    info: &'a ModelInfo,
    request: &'a ModelRequest,
    script: &'a Script,
    beats: &'a mut Vec<Beat>,
}

impl Writer<'_> {
    fn calls(&mut self, calls: &[ScriptedCall]) {
        let turn_id = hex::encode(Sha256::digest(format!(
            "{}\u{0}{}",
            self.request.message_id,
            self.request.messages.len()
        )));
        let mut words = 0;
        for (call, index) in calls.iter().zip(0..) {
            let id = format!("call_{}_{index}", &turn_id[..8]);
            words += count_words(&call.arguments) + 1;
            self.send(|chunk| {
                chunk.tool_calls = vec![ToolCall::new(id.clone(), call.tool.clone(), Map::new())];
                chunk.tool_call_chunks = vec![piece(index, Some(call.tool.clone()), Some(id), "")];
            });
            let letters = call.arguments.chars().count();
            let size = if self.script.frag {
                1
            } else {
                letters.div_ceil(2).max(1)
            };
            for part in split_evenly(&call.arguments, size) {
                self.send(|chunk| chunk.tool_call_chunks = vec![piece(index, None, None, part)]);
            }
        }
        self.close("tool_calls", words);
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
        let text = copy::final_text(self.script, self.info);
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
                self.beats.push(Beat::Wait(pace.gap));
            }
        }
        self.close(
            self.script.stop.as_deref().unwrap_or("stop"),
            pieces.len() as u64,
        );
    }

    /// Usage in a chunk of its own, then the closing chunk.
    fn close(&mut self, finish_reason: &str, words: u64) {
        let (input, output) = self
            .script
            .usage
            .unwrap_or_else(|| (count_request(self.request), words));
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
        self.beats.push(Beat::Send(Box::new(chunk)));
    }

    fn break_off(&mut self, message: &str) {
        self.beats.push(Beat::Fail(ModelError {
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

/// The rule of the scripted model's usage: a word is a token.
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

/// Words with the white space behind them; joined again they are the text.
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

/// Pieces of `size` characters.
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
