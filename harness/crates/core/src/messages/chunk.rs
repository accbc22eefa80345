//! Fragments of an AI message, as they are streamed to viewers.

use serde::Serialize;
use serde_json::{Map, Value};

use super::{InvalidToolCall, ToolCall, UsageMetadata};

/// Type of fragments on the wire.
const KIND: &str = "AIMessageChunk";

/// Fragment of a tool call; the fragments of one call share `index`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ToolCallChunk {
    /// Name of the tool, on the first fragment only.
    pub name: Option<String>,
    /// Fragment of the arguments' JSON text.
    pub args: Option<String>,
    /// Id of the call, on the first fragment only.
    pub id: Option<String>,
    /// Index of the call within the message, from 0.
    pub index: u32,
    /// Always `tool_call_chunk`.
    #[serde(rename = "type")]
    pub kind: &'static str,
}

/// Content that one provider event added to an AI message, in the wire form of a LangChain
/// `AIMessageChunk`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MessageChunk {
    /// Added text.
    pub content: String,
    /// Added `reasoning_content`, and provider extras.
    pub additional_kwargs: Map<String, Value>,
    /// Names of provider and model; the finish reason on the last chunk.
    pub response_metadata: Map<String, Value>,
    /// Always `AIMessageChunk`; clients cut `MessageChunk` off and lower-case the rest.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// Always null.
    pub name: Option<String>,
    /// Id of the final message, the same on every chunk.
    pub id: String,
    /// Calls that start in this chunk, with the arguments known so far. For viewers only: the
    /// message is assembled from `tool_call_chunks` alone.
    pub tool_calls: Vec<ToolCall>,
    /// Always empty on chunks.
    pub invalid_tool_calls: Vec<InvalidToolCall>,
    /// Token counts, on the chunk that carries them.
    pub usage_metadata: Option<UsageMetadata>,
    /// Fragments of tool calls.
    pub tool_call_chunks: Vec<ToolCallChunk>,
    /// `last` on the closing chunk.
    pub chunk_position: Option<&'static str>,
}

impl MessageChunk {
    /// Creates an empty chunk.
    pub fn empty(id: impl Into<String>) -> Self {
        Self {
            content: String::new(),
            additional_kwargs: Map::new(),
            response_metadata: Map::new(),
            kind: KIND,
            name: None,
            id: id.into(),
            tool_calls: Vec::new(),
            invalid_tool_calls: Vec::new(),
            usage_metadata: None,
            tool_call_chunks: Vec::new(),
            chunk_position: None,
        }
    }

    /// Reports whether the chunk adds text and nothing else.
    pub fn is_text_only(&self) -> bool {
        let Self {
            content: _,
            additional_kwargs,
            response_metadata,
            kind,
            name,
            id: _,
            tool_calls,
            invalid_tool_calls,
            usage_metadata,
            tool_call_chunks,
            chunk_position,
        } = self;
        additional_kwargs.is_empty()
            && response_metadata.is_empty()
            && *kind == KIND
            && name.is_none()
            && tool_calls.is_empty()
            && invalid_tool_calls.is_empty()
            && usage_metadata.is_none()
            && tool_call_chunks.is_empty()
            && chunk_position.is_none()
    }
}
