//! The tool calls of an answer in the pieces that viewers see, for wires that say clearly where each call begins.

use serde_json::{Map, Value};

use crate::messages::{MessageChunk, ToolCall, ToolCallChunk};

/// The calls so far, by their ids, in their order.
#[derive(Debug, Default)]
pub(in crate::models) struct CallPieces(Vec<String>);

impl CallPieces {
    /// Whether no call has begun.
    pub(in crate::models) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The id of the call at place `at`.
    pub(in crate::models) fn id(&self, at: u32) -> &str {
        self.0
            .get(at as usize)
            .map(String::as_str)
            .unwrap_or_default()
    }

    /// Announces a call, with an id of ours where the provider gave none or one that is used already; gives its place.
    pub(in crate::models) fn begin(
        &mut self,
        id: &str,
        name: &str,
        chunk: &mut MessageChunk,
    ) -> u32 {
        // Readers refuse answers long before places run out.
        let at = u32::try_from(self.0.len()).unwrap_or(u32::MAX);
        let usable = !id.is_empty() && !self.0.iter().any(|known| known == id);
        let id = if usable {
            id.to_owned()
        } else {
            format!("call_{}_{at}", chunk.id)
        };
        chunk
            .tool_calls
            .push(ToolCall::new(id.clone(), name, Map::new()));
        chunk.tool_call_chunks.push(piece(
            at,
            Some(name.to_owned()),
            Some(id.clone()),
            String::new(),
        ));
        self.0.push(id);
        at
    }

    /// Adds a piece of the argument text of the call at place `at`.
    pub(in crate::models) fn add(&self, at: u32, args: String, chunk: &mut MessageChunk) {
        if !args.is_empty() {
            chunk.tool_call_chunks.push(piece(at, None, None, args));
        }
    }

    /// A call that comes in one piece.
    pub(in crate::models) fn whole(
        &mut self,
        id: &str,
        name: &str,
        args: &Value,
        chunk: &mut MessageChunk,
    ) -> u32 {
        let at = self.begin(id, name, chunk);
        self.add(at, args.to_string(), chunk);
        at
    }
}

fn piece(index: u32, name: Option<String>, id: Option<String>, args: String) -> ToolCallChunk {
    ToolCallChunk {
        name,
        args: Some(args),
        id,
        index,
        kind: "tool_call_chunk",
    }
}
