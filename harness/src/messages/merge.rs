//! Adds the fragments of one streamed AI message up to the final message.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::tool_call::invalid_tool_call_type;
use super::{Content, InvalidToolCall, Message, MessageBody, MessageChunk, MessageKind, ToolCall, UsageMetadata, kwargs};

/// Collects chunks. What was streamed adds up to what [`MessageAccumulator::finish`] returns.
#[derive(Debug, Clone, Default)]
pub struct MessageAccumulator {
    id: String,
    text: String,
    reasoning: String,
    kwargs: Map<String, Value>,
    metadata: Map<String, Value>,
    calls: BTreeMap<u32, PartialCall>,
    usage: Option<UsageMetadata>,
}

#[derive(Debug, Clone, Default)]
struct PartialCall {
    id: String,
    name: String,
    args: String,
}

impl MessageAccumulator {
    /// An accumulator for the message `id`.
    pub fn new(id: impl Into<String>) -> Self {
        Self { id: id.into(), ..Self::default() }
    }

    /// The id of the message under way.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Whether any text, reasoning or call has arrived.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty() && self.reasoning.is_empty() && self.calls.is_empty()
    }

    /// Adds one chunk.
    pub fn push(&mut self, chunk: &MessageChunk) {
        self.text.push_str(&chunk.content);
        for (key, value) in &chunk.additional_kwargs {
            match value {
                Value::String(piece) if key == kwargs::REASONING_CONTENT => self.reasoning.push_str(piece),
                _ => {
                    self.kwargs.insert(key.clone(), value.clone());
                }
            }
        }
        for (key, value) in &chunk.response_metadata {
            self.metadata.insert(key.clone(), value.clone());
        }
        for piece in &chunk.tool_call_chunks {
            let call = self.calls.entry(piece.index).or_default();
            if let Some(id) = piece.id.as_deref().filter(|id| !id.is_empty()) {
                id.clone_into(&mut call.id);
            }
            call.name.push_str(piece.name.as_deref().unwrap_or_default());
            call.args.push_str(piece.args.as_deref().unwrap_or_default());
        }
        if let Some(usage) = &chunk.usage_metadata {
            self.usage = Some(usage.clone());
        }
    }

    /// The whole message. Arguments that are no JSON object become invalid calls, never an error.
    pub fn finish(self) -> Message {
        let mut tool_calls = Vec::new();
        let mut invalid_tool_calls = Vec::new();
        for (index, call) in &self.calls {
            let id = if call.id.is_empty() { format!("call_{}_{index}", self.id) } else { call.id.clone() };
            match parse_args(&call.args) {
                Ok(args) => tool_calls.push(ToolCall::new(id, call.name.clone(), args)),
                Err(error) => invalid_tool_calls.push(InvalidToolCall {
                    name: Some(call.name.clone()),
                    args: Some(call.args.clone()),
                    id: Some(id),
                    error: Some(error),
                    kind: invalid_tool_call_type(),
                }),
            }
        }
        let usage = self.usage.clone();
        self.into_message(MessageKind::Ai { tool_calls, invalid_tool_calls, usage_metadata: usage })
    }

    /// What can be kept of a message that was cut off: its text and reasoning, marked incomplete; half-written calls are
    /// dropped, for nobody will answer them. Nothing when no text had arrived.
    pub fn finish_partial(self) -> Option<Message> {
        if self.text.is_empty() {
            return None;
        }
        let kind = MessageKind::Ai { tool_calls: vec![], invalid_tool_calls: vec![], usage_metadata: self.usage.clone() };
        Some(self.into_message(kind).with(|body| {
            body.additional_kwargs.insert(kwargs::INCOMPLETE.to_owned(), Value::Bool(true));
        }))
    }

    fn into_message(self, kind: MessageKind) -> Message {
        let mut additional_kwargs = self.kwargs;
        if !self.reasoning.is_empty() {
            additional_kwargs.insert(kwargs::REASONING_CONTENT.to_owned(), Value::String(self.reasoning));
        }
        MessageBody {
            id: Some(self.id),
            content: Content::Text(self.text),
            name: None,
            additional_kwargs,
            response_metadata: self.metadata,
            kind,
        }
        .into()
    }
}

/// Empty arguments mean none: many providers send no text at all for a call without parameters.
fn parse_args(text: &str) -> Result<Map<String, Value>, String> {
    if text.trim().is_empty() {
        return Ok(Map::new());
    }
    match serde_json::from_str::<Value>(text) {
        Ok(Value::Object(args)) => Ok(args),
        Ok(_) => Err("the arguments are not a JSON object".to_owned()),
        Err(error) => Err(format!("the arguments are not valid JSON: {error}")),
    }
}
