//! Builds the tool-call chunks of an answer, for wires that mark the beginning of each call.

use serde_json::{Map, Value};

use deerflow_core::messages::{MessageChunk, ToolCall, ToolCallChunk};

/// Ids of the calls so far, in their order.
#[derive(Debug, Default)]
pub(crate) struct ToolCallBuilder(Vec<String>);

impl ToolCallBuilder {
    /// Reports whether no call has begun.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the id of the call at `index`.
    pub(crate) fn id(&self, index: u32) -> &str {
        self.0
            .get(index as usize)
            .map(String::as_str)
            .unwrap_or_default()
    }

    /// Announces a call and returns its index. Generates an id if the provider sent none or a
    /// duplicate.
    pub(crate) fn begin(&mut self, id: &str, name: &str, chunk: &mut MessageChunk) -> u32 {
        // Readers reject an answer long before the index overflows.
        let index = u32::try_from(self.0.len()).unwrap_or(u32::MAX);
        let usable = !id.is_empty() && !self.0.iter().any(|existing| existing == id);
        let id = if usable {
            id.to_owned()
        } else {
            format!("call_{}_{index}", chunk.id)
        };
        chunk
            .tool_calls
            .push(ToolCall::new(id.clone(), name, Map::new()));
        chunk.tool_call_chunks.push(piece(
            index,
            Some(name.to_owned()),
            Some(id.clone()),
            String::new(),
        ));
        self.0.push(id);
        index
    }

    /// Adds a piece of the argument text of the call at `index`.
    pub(crate) fn add(&self, index: u32, args: String, chunk: &mut MessageChunk) {
        if !args.is_empty() {
            chunk.tool_call_chunks.push(piece(index, None, None, args));
        }
    }

    /// Adds a call that arrives in one piece.
    pub(crate) fn whole(
        &mut self,
        id: &str,
        name: &str,
        args: &Value,
        chunk: &mut MessageChunk,
    ) -> u32 {
        let index = self.begin(id, name, chunk);
        self.add(index, args.to_string(), chunk);
        index
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
