//! Chat completions: the request body, and the answer as it is collected from chunks. Pure.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::call::{CallFailure, ensure_answer_size, is_retryable_status};
use super::failure::{DEEPSEEK_EMPTY_RESPONSE, DEEPSEEK_REQUEST_FAILED, adapter_error};
use super::redaction::redacted;
use super::transport::TurnRequest;
use super::usage::{COMPLETION_NAMES, read_usage};
use crate::adapter::{
    AgentTurnResult, FlowError, TurnDelta, TurnMode, TurnStatus, TurnWarning, Usage,
};
use crate::structured_output::{final_text, structured_output};
use secrecy::SecretString;

/// Returns the request body of a turn.
pub(super) fn request_body(request: &TurnRequest<'_>, model: &str) -> Value {
    let turn = request.invocation;
    let mut messages = Vec::new();
    if !turn.system_prompt.trim().is_empty() {
        messages.push(json!({"role": "system", "content": turn.system_prompt}));
    }
    messages.extend(turn.messages.iter().map(|message| json!(message)));
    if !turn.history_has_prompt() {
        messages.push(json!({"role": "user", "content": turn.user_prompt}));
    }
    let mut body = json!({
        "model": model,
        "messages": messages,
        "stream": true,
        "stream_options": {"include_usage": true},
    });
    if let Some(temperature) = request.temperature {
        body["temperature"] = json!(temperature);
    }
    if let Some(max_tokens) = turn.max_tokens {
        body["max_tokens"] = json!(max_tokens);
    }
    body
}

/// A tool call as it is collected.
#[derive(Debug, Default)]
struct PartialCall {
    id: String,
    name: String,
    arguments: String,
}

/// An answer as it is collected.
#[derive(Debug, Default)]
pub(super) struct Completion {
    text: String,
    reasoning: String,
    calls: BTreeMap<u64, PartialCall>,
    call_bytes: usize,
    usage: Usage,
    has_reason: bool,
    is_done: bool,
    error: Option<Value>,
}

impl Completion {
    /// Reads a line of an event stream. Returns what it adds. Lines that cannot be parsed are
    /// ignored.
    pub(super) fn line(&mut self, line: &[u8]) -> Result<TurnDelta, CallFailure> {
        match line.strip_prefix(b"data:").map(<[u8]>::trim_ascii) {
            Some(b"[DONE]") => self.is_done = true,
            Some(payload) => {
                if let Ok(chunk) = serde_json::from_slice(payload) {
                    return self.chunk(&chunk);
                }
            }
            None => {}
        }
        Ok(TurnDelta::default())
    }

    /// Reads a chunk, or a whole answer that is not streamed.
    pub(super) fn chunk(&mut self, chunk: &Value) -> Result<TurnDelta, CallFailure> {
        let mut added = TurnDelta::default();
        if let Some(error) = chunk.get("error").filter(|error| !error.is_null()) {
            self.error.get_or_insert_with(|| error.clone());
        }
        if let Some(usage) = chunk.get("usage").filter(|usage| usage.is_object()) {
            self.usage = read_usage(usage, &COMPLETION_NAMES);
        }
        let Some(choice) = chunk.pointer("/choices/0") else {
            return Ok(added);
        };
        self.has_reason |= choice["finish_reason"].is_string();
        let part = choice.get("delta").or_else(|| choice.get("message"));
        let part = part.unwrap_or(&Value::Null);
        added.text = text_of(part, "content").to_owned();
        added.reasoning = text_of(part, "reasoning_content").to_owned();
        self.text.push_str(&added.text);
        self.reasoning.push_str(&added.reasoning);
        for (position, call) in part["tool_calls"]
            .as_array()
            .into_iter()
            .flatten()
            .enumerate()
        {
            self.add_call(position, call);
        }
        ensure_answer_size(self.text.len() + self.reasoning.len() + self.call_bytes)?;
        Ok(added)
    }

    fn add_call(&mut self, position: usize, piece: &Value) {
        let index = piece["index"].as_u64().unwrap_or(position as u64);
        let call = self.calls.entry(index).or_default();
        let id = text_of(piece, "id");
        if !id.is_empty() {
            id.clone_into(&mut call.id);
        }
        let function = &piece["function"];
        let (name, arguments) = (text_of(function, "name"), text_of(function, "arguments"));
        call.name.push_str(name);
        call.arguments.push_str(arguments);
        // An empty piece costs memory, too.
        self.call_bytes += id.len() + name.len() + arguments.len() + size_of::<PartialCall>();
    }

    /// Reports whether further input has no effect.
    pub(super) fn is_over(&self) -> bool {
        self.is_done || self.error.is_some()
    }

    /// Reports whether the answer is complete, so that a later failure of the connection does not
    /// matter.
    pub(super) fn is_complete(&self) -> bool {
        self.is_done || self.has_reason
    }

    /// Returns the result of the turn.
    pub(super) fn into_result(self, mode: TurnMode, key: Option<&SecretString>) -> AgentTurnResult {
        let failed = |error| AgentTurnResult {
            usage: self.usage.clone(),
            ..AgentTurnResult::ended(TurnStatus::Failed, error)
        };
        if let Some(error) = &self.error {
            return failed(stream_error(error, key));
        }
        if self.text.trim().is_empty() && self.calls.is_empty() {
            return failed(adapter_error(
                DEEPSEEK_EMPTY_RESPONSE,
                "the model returned neither text nor a tool call",
            ));
        }
        let mut warnings = Vec::new();
        let mut warn = |code: &str, message: &str| {
            warnings.push(TurnWarning {
                code: code.to_owned(),
                message: message.to_owned(),
            });
        };
        if !self.is_complete() {
            warn(
                "stream_unterminated",
                "the stream ended without a finish reason; the text may be truncated",
            );
        }
        if !self.calls.is_empty() {
            warn(
                "tool_calls_not_executed",
                "the model called tools, which this adapter reports and does not execute",
            );
        }
        let structured = structured_output(&self.text, mode);
        AgentTurnResult {
            reasoning_text: Some(self.reasoning.trim().to_owned()).filter(|text| !text.is_empty()),
            tool_calls: self.calls.into_iter().map(reported_call).collect(),
            usage: self.usage,
            warnings,
            ..AgentTurnResult {
                structured_output: structured.clone(),
                ..AgentTurnResult::completed(final_text(&self.text, structured.as_ref(), mode))
            }
        }
    }
}

fn text_of<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn reported_call((index, call): (u64, PartialCall)) -> Value {
    let id = if call.id.is_empty() {
        format!("call_{index}")
    } else {
        call.id
    };
    let arguments = serde_json::from_str::<Map<String, Value>>(&call.arguments).map(Value::Object);
    json!({
        "toolCallId": id,
        "toolName": call.name,
        "arguments": arguments.unwrap_or(Value::String(call.arguments)),
        "status": "pending_approval",
    })
}

/// Returns the error that a provider reports inside of its answer.
fn stream_error(error: &Value, key: Option<&SecretString>) -> FlowError {
    let message = match error {
        Value::String(message) => message.as_str(),
        object => text_of(object, "message"),
    };
    let message = if message.trim().is_empty() {
        "the provider reported an error inside of its answer"
    } else {
        message
    };
    let status = ["code", "status"].iter().find_map(|name| {
        let value = error.get(name)?;
        let number = value.as_u64().or_else(|| value.as_str()?.parse().ok())?;
        u16::try_from(number).ok()
    });
    let error = adapter_error(DEEPSEEK_REQUEST_FAILED, redacted(message, key));
    match status {
        Some(status) => error
            .retryable(is_retryable_status(status))
            .with_detail("providerCode", status),
        None => error,
    }
}
