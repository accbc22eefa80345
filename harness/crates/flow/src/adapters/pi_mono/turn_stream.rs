//! Event stream of the HTTP transport: events `delta` with a fragment and `result` with the answer.
//! Pure.

use secrecy::SecretString;
use serde_json::{Map, Value};

use super::call::{CallFailure, ensure_answer_size};
use super::turn_wire::{bad_turn, turn_result};
use crate::adapter::{AgentTurnResult, TurnDelta, TurnMode, TurnWarning};
use crate::structured_output::structured_output;

/// Event that the next data line belongs to.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Event {
    /// Fragment of text or reasoning.
    Delta,
    /// Answer to the turn.
    Result,
    /// Any other.
    #[default]
    Other,
}

/// A streamed answer as it is collected.
#[derive(Debug, Default)]
pub(super) struct TurnStream {
    event: Event,
    text: String,
    reasoning: String,
    result: Option<Map<String, Value>>,
}

impl TurnStream {
    /// Reads a line. Returns what it adds. Lines that cannot be parsed are ignored.
    pub(super) fn line(&mut self, line: &[u8]) -> Result<TurnDelta, CallFailure> {
        if let Some(name) = line.strip_prefix(b"event:") {
            self.event = match name.trim_ascii() {
                b"delta" => Event::Delta,
                b"result" => Event::Result,
                _ => Event::Other,
            };
        }
        let mut added = TurnDelta::default();
        if let Some(payload) = line.strip_prefix(b"data:")
            && let Ok(Value::Object(data)) = serde_json::from_slice(payload.trim_ascii())
        {
            match std::mem::take(&mut self.event) {
                Event::Delta => added = self.add(&data),
                Event::Result => self.result = Some(data),
                Event::Other => {}
            }
        }
        ensure_answer_size(self.text.len() + self.reasoning.len())?;
        Ok(added)
    }

    fn add(&mut self, data: &Map<String, Value>) -> TurnDelta {
        let text = |names: [&str; 2]| {
            let found = names.iter().find_map(|name| data.get(*name)?.as_str());
            found.unwrap_or_default().to_owned()
        };
        let added = TurnDelta {
            text: text(["deltaText", "text"]),
            reasoning: text(["deltaReasoningText", "reasoning"]),
        };
        self.text.push_str(&added.text);
        self.reasoning.push_str(&added.reasoning);
        added
    }

    /// Reports whether the answer has arrived.
    pub(super) fn is_over(&self) -> bool {
        self.result.is_some()
    }

    /// Returns the result of the turn. An answer without a final text has the streamed one.
    pub(super) fn into_result(self, mode: TurnMode, key: Option<&SecretString>) -> AgentTurnResult {
        let text = self.text.trim();
        let mut result = match &self.result {
            Some(answer) => turn_result(answer, mode, key),
            None if text.is_empty() => return bad_turn("the stream has neither text nor result"),
            None => AgentTurnResult {
                warnings: vec![TurnWarning {
                    code: "stream_unterminated".to_owned(),
                    message: "the stream ended without a result; the text may be truncated"
                        .to_owned(),
                }],
                ..AgentTurnResult::completed("")
            },
        };
        if result.final_text.is_empty() {
            text.clone_into(&mut result.final_text);
            if mode != TurnMode::Normal && result.structured_output.is_none() {
                result.structured_output = structured_output(text, mode);
            }
        }
        if result.reasoning_text.is_none() && !self.reasoning.trim().is_empty() {
            result.reasoning_text = Some(self.reasoning.trim().to_owned());
        }
        result
    }
}
