//! What a conversation tells, in the shapes of DeerFlow's own embedded client.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What an event tells of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum EventKind {
    /// A piece of a message.
    ///
    /// - text of the model: `{type: "ai", content: <what is new>, id, usage_metadata?, additional_kwargs?}`
    /// - its calls: `{type: "ai", content: "", id, tool_calls: [{name, args, id}]}`
    /// - a result: `{type: "tool", content, name, tool_call_id, id, status, artifact?}`
    MessagesTuple,
    /// The state after a step: `{title, messages, artifacts}`.
    Values,
    /// What a tool or a middleware has to say, as it said it.
    Custom,
    /// The end, once and last: `{usage: {input_tokens, output_tokens, total_tokens}}` of the whole run.
    End,
}

/// One event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StreamEvent {
    /// What it tells of.
    #[serde(rename = "type")]
    pub kind: EventKind,
    /// What it tells; [`EventKind`] has the shapes.
    pub data: Value,
}

impl StreamEvent {
    /// The message that a text was added to, and the text.
    pub fn text(&self) -> Option<(&str, &str)> {
        if self.kind != EventKind::MessagesTuple || self.data["type"] != "ai" {
            return None;
        }
        let text = self.data["content"].as_str().filter(|text| !text.is_empty())?;
        Some((self.data["id"].as_str().unwrap_or_default(), text))
    }
}
