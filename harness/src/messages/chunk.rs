//! A fragment of an AI message on its way to viewers.

use serde::Serialize;
use serde_json::{Map, Value};

use super::{InvalidToolCall, ToolCall, UsageMetadata};

/// A piece of a tool call; the pieces of one call share `index`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ToolCallChunk {
    /// The tool's name, on the first piece only.
    pub name: Option<String>,
    /// A piece of the arguments' JSON text.
    pub args: Option<String>,
    /// The call's id, on the first piece only.
    pub id: Option<String>,
    /// Which call of the message, from 0.
    pub index: u32,
    /// Always `tool_call_chunk`.
    #[serde(rename = "type")]
    pub kind: &'static str,
}

/// What one provider event added to an AI message, in the wire shape of a LangChain `AIMessageChunk`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MessageChunk {
    /// Text added.
    pub content: String,
    /// `reasoning_content` added, and provider extras.
    pub additional_kwargs: Map<String, Value>,
    /// Provider and model names, the finish reason on the last chunk.
    pub response_metadata: Map<String, Value>,
    /// Always `AIMessageChunk`; clients cut `MessageChunk` off and lower-case the rest.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// Always null.
    pub name: Option<String>,
    /// The final message's id, the same on every chunk.
    pub id: String,
    /// The calls that begin in this chunk, with what of their arguments is known. For viewers only: the message is made of
    /// `tool_call_chunks` alone.
    pub tool_calls: Vec<ToolCall>,
    /// Always empty on chunks.
    pub invalid_tool_calls: Vec<InvalidToolCall>,
    /// Token counts, on the chunk that brings them.
    pub usage_metadata: Option<UsageMetadata>,
    /// Pieces of tool calls.
    pub tool_call_chunks: Vec<ToolCallChunk>,
    /// `last` on the closing chunk.
    pub chunk_position: Option<&'static str>,
}

impl MessageChunk {
    /// A chunk that adds nothing yet.
    pub fn empty(id: impl Into<String>) -> Self {
        Self {
            content: String::new(),
            additional_kwargs: Map::new(),
            response_metadata: Map::new(),
            kind: "AIMessageChunk",
            name: None,
            id: id.into(),
            tool_calls: Vec::new(),
            invalid_tool_calls: Vec::new(),
            usage_metadata: None,
            tool_call_chunks: Vec::new(),
            chunk_position: None,
        }
    }
}
