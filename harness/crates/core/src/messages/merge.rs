//! Accumulates the fragments of one streamed AI message into the final message.

use std::collections::{BTreeMap, HashSet};

use serde_json::{Map, Value};

use super::json_repair::repaired;
use super::tool_call::invalid_tool_call_type;
use super::{
    Content, InvalidToolCall, Message, MessageBody, MessageChunk, MessageKind, ToolCall,
    UsageMetadata, kwargs,
};

/// Accumulator of chunks. [`MessageAccumulator::finish`] returns exactly the streamed content.
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
    /// Creates an accumulator for the message `id`.
    pub fn new(id: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            ..Self::default()
        }
    }

    /// Returns the id of the message.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Reports whether no text, reasoning or call has arrived.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty() && self.reasoning.is_empty() && self.calls.is_empty()
    }

    /// Adds one chunk.
    pub fn push(&mut self, chunk: &MessageChunk) {
        self.text.push_str(&chunk.content);
        for (key, value) in &chunk.additional_kwargs {
            match value {
                Value::String(piece) if key == kwargs::REASONING_CONTENT => {
                    self.reasoning.push_str(piece)
                }
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
            call.name
                .push_str(piece.name.as_deref().unwrap_or_default());
            call.args
                .push_str(piece.args.as_deref().unwrap_or_default());
        }
        if let Some(usage) = &chunk.usage_metadata {
            self.usage = Some(usage.clone());
        }
    }

    /// Returns the message received so far; its calls have the arguments that can already be
    /// parsed.
    pub fn so_far(&self) -> Message {
        let call = |(id, call): (String, &PartialCall)| {
            ToolCall::new(id, call.name.clone(), partial_args(&call.args))
        };
        let tool_calls = self.calls_with_ids().map(call).collect();
        let kind = MessageKind::Ai {
            tool_calls,
            invalid_tool_calls: vec![],
            usage_metadata: self.usage.clone().map(Box::new),
        };
        self.clone().into_message(kind)
    }

    /// Returns the complete message. Arguments that are not a JSON object become invalid calls,
    /// never an error.
    pub fn finish(self) -> Message {
        let mut tool_calls = Vec::new();
        let mut invalid_tool_calls = Vec::new();
        for (id, call) in self.calls_with_ids() {
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
        self.into_message(MessageKind::Ai {
            tool_calls,
            invalid_tool_calls,
            usage_metadata: usage.map(Box::new),
        })
    }

    /// Returns the calls with unique ids: some providers send the same id for all calls, or none.
    fn calls_with_ids(&self) -> impl Iterator<Item = (String, &PartialCall)> {
        let mut used_ids = HashSet::new();
        self.calls.iter().map(move |(index, call)| {
            let mut id = if call.id.is_empty() {
                format!("call_{}_{index}", self.id)
            } else {
                call.id.clone()
            };
            while !used_ids.insert(id.clone()) {
                id = format!("{id}_{index}");
            }
            (id, call)
        })
    }

    /// Returns the usable part of an interrupted message: its text and reasoning, marked as
    /// incomplete. Partial calls are dropped, because they will never get results. `None` if no
    /// text had arrived.
    pub fn finish_partial(self) -> Option<Message> {
        if self.text.is_empty() {
            return None;
        }
        let kind = MessageKind::Ai {
            tool_calls: vec![],
            invalid_tool_calls: vec![],
            usage_metadata: self.usage.clone().map(Box::new),
        };
        Some(self.into_message(kind).with(|body| {
            body.additional_kwargs
                .insert(kwargs::INCOMPLETE.to_owned(), Value::Bool(true));
        }))
    }

    fn into_message(self, kind: MessageKind) -> Message {
        let mut additional_kwargs = self.kwargs;
        if !self.reasoning.is_empty() {
            additional_kwargs.insert(
                kwargs::REASONING_CONTENT.to_owned(),
                Value::String(self.reasoning),
            );
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

/// Parses an unfinished JSON object: its complete entries, and a string that is not closed yet.
fn partial_args(text: &str) -> Map<String, Value> {
    let mut closers = Vec::new();
    let (mut quoted, mut escaped) = (false, false);
    // Positions at which the text can be closed, with the closing characters.
    let mut ends: Vec<(usize, String)> = Vec::new();
    for (at, ch) in text.char_indices() {
        match (quoted, ch) {
            (true, _) if escaped => escaped = false,
            (true, '\\') => escaped = true,
            (_, '"') => quoted = !quoted,
            (true, _) => {}
            (false, '{') => closers.push('}'),
            (false, '[') => closers.push(']'),
            (false, '}' | ']') => {
                closers.pop();
            }
            (false, ',') => ends.push((at, closers.iter().rev().collect())),
            _ => {}
        }
        if matches!(ch, '{' | '[') && !quoted {
            ends.push((at + 1, closers.iter().rev().collect()));
        }
    }
    let open: String = if quoted { "\"" } else { "" }
        .chars()
        .chain(closers.iter().rev().copied())
        .collect();
    ends.push((text.len(), open));
    let read = |(at, closing): &(usize, String)| {
        serde_json::from_str::<Map<String, Value>>(&format!("{}{closing}", &text[..*at])).ok()
    };
    // Limits the attempts: invalid JSON must not be parsed at each of its positions.
    ends.iter().rev().take(8).find_map(read).unwrap_or_default()
}

/// Empty arguments mean none: many providers send no text at all for a call without parameters.
fn parse_args(text: &str) -> Result<Map<String, Value>, String> {
    if text.trim().is_empty() {
        return Ok(Map::new());
    }
    match serde_json::from_str::<Value>(text)
        .or_else(|error| serde_json::from_str(&repaired(text)).map_err(|_repaired| error))
    {
        Ok(Value::Object(args)) => Ok(args),
        Ok(_) => Err("the arguments are not a JSON object".to_owned()),
        Err(error) => Err(format!("the arguments are not valid JSON: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages::ToolCallChunk;
    use serde_json::json;

    #[test]
    fn calls_with_duplicate_ids_get_unique_ids() {
        let piece = |index, id: &str| ToolCallChunk {
            name: Some("f".to_owned()),
            args: Some("{}".to_owned()),
            id: Some(id.to_owned()),
            index,
            kind: "tool_call_chunk",
        };
        let mut answer = MessageAccumulator::new("m");
        let pieces = [piece(0, "a"), piece(1, "a"), piece(2, "a_1"), piece(3, "")];
        answer.push(&MessageChunk {
            tool_call_chunks: pieces.into(),
            ..MessageChunk::empty("m")
        });
        let ids = |message: Message| {
            message
                .tool_calls()
                .iter()
                .map(|call| call.id.clone())
                .collect::<Vec<_>>()
        };
        assert_eq!(ids(answer.so_far()), ["a", "a_1", "a_1_2", "call_m_3"]);
        assert_eq!(ids(answer.finish()), ["a", "a_1", "a_1_2", "call_m_3"]);
    }

    #[test]
    fn unfinished_arguments_are_parsed_as_far_as_possible() {
        for (text, read) in [
            ("", json!({})),
            ("{", json!({})),
            (r#"{"a":"#, json!({})),
            (r#"{"a":"b c"#, json!({ "a": "b c" })),
            (r#"{"a":"b","c":["#, json!({ "a": "b", "c": [] })),
            (r#"{"a":"b","c":[1,2"#, json!({ "a": "b", "c": [1, 2] })),
            (r#"{"a":"b\"#, json!({})),
            (r#"{"a":"x}","b":{"c":tr"#, json!({ "a": "x}", "b": {} })),
            (r#"{"a":1}"#, json!({ "a": 1 })),
            ("nonsense", json!({})),
        ] {
            assert_eq!(json!(partial_args(text)), read, "{text}");
        }
    }
}
