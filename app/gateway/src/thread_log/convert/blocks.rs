//! Content of a message in blocks: text, reasoning and tool calls.

use serde::Serialize;
use serde_json::{Value, json};

/// Kind of a block.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum BlockKind {
    /// Text for the reader.
    Text,
    /// Reasoning of the model.
    Reasoning,
    /// Tool call; its content is the JSON of its arguments.
    Call {
        /// Id of the call.
        id: String,
        /// Name of the tool.
        name: String,
    },
}

/// A block and what was received of it.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) kind: BlockKind,
    received: String,
    /// `true` until its finish was sent.
    pub(super) is_open: bool,
}

/// Data of a fragment.
#[derive(Debug, Serialize)]
struct DeltaEvent<'a> {
    event: &'static str,
    index: usize,
    delta: Delta<'a>,
}

#[derive(Debug, Serialize)]
#[serde(tag = "type")]
enum Delta<'a> {
    #[serde(rename = "text-delta")]
    Text { text: &'a str },
    #[serde(rename = "reasoning-delta")]
    Reasoning { reasoning: &'a str },
    #[serde(rename = "tool-call-delta")]
    ToolCall { args: &'a str },
}

impl Block {
    pub(super) fn new(kind: BlockKind) -> Self {
        Self {
            kind,
            received: String::new(),
            is_open: true,
        }
    }

    /// Returns the data of the start.
    pub(super) fn start(&self, index: usize) -> Value {
        let content = match &self.kind {
            BlockKind::Text => json!({ "type": "text", "text": "" }),
            BlockKind::Reasoning => json!({ "type": "reasoning", "reasoning": "" }),
            BlockKind::Call { id, name } => {
                json!({ "type": "tool_call_chunk", "id": id, "name": name, "args": "" })
            }
        };
        json!({ "event": "content-block-start", "index": index, "content": content })
    }

    /// Adds a fragment and returns its data.
    pub(super) fn delta<'a>(&mut self, index: usize, added: &'a str) -> impl Serialize + use<'a> {
        self.received.push_str(added);
        let delta = match &self.kind {
            BlockKind::Text => Delta::Text { text: added },
            BlockKind::Reasoning => Delta::Reasoning { reasoning: added },
            BlockKind::Call { .. } => Delta::ToolCall { args: added },
        };
        DeltaEvent {
            event: "content-block-delta",
            index,
            delta,
        }
    }

    /// Closes the block and returns the data of its finish: the whole content.
    pub(super) fn finish(&mut self, index: usize) -> Value {
        self.is_open = false;
        let received = std::mem::take(&mut self.received);
        let content = match &self.kind {
            BlockKind::Text => json!({ "type": "text", "text": received }),
            BlockKind::Reasoning => json!({ "type": "reasoning", "reasoning": received }),
            BlockKind::Call { id, name } => finished_call(id, name, &received),
        };
        json!({ "event": "content-block-finish", "index": index, "content": content })
    }
}

fn finished_call(id: &str, name: &str, received: &str) -> Value {
    let args = if received.trim().is_empty() {
        Ok(json!({}))
    } else {
        serde_json::from_str::<Value>(received)
    };
    match args {
        Ok(args) if args.is_object() => {
            json!({ "type": "tool_call", "id": id, "name": name, "args": args })
        }
        Ok(_) => invalid_call(id, name, received, "the arguments are no object"),
        Err(error) => invalid_call(id, name, received, &error.to_string()),
    }
}

fn invalid_call(id: &str, name: &str, received: &str, error: &str) -> Value {
    json!({ "type": "invalid_tool_call", "id": id, "name": name, "args": received, "error": error })
}

/// Returns the text of a message's content, which is a text or a list of parts.
pub(super) fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts
            .iter()
            .filter_map(|part| part.as_str().or_else(|| part["text"].as_str()))
            .collect(),
        _ => String::new(),
    }
}
