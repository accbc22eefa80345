//! Journal rows of a run's subagents, and a list of the running ones.

use serde_json::{Map, Value, json};

use crate::agent::{SubagentEvent, SubagentStatus, SubagentUpdate};
use deerflow_core::messages::{InvalidToolCall, Message, MessageKind};

/// Maximum length of a row's text, in characters.
const MAX_TEXT_CHARS: usize = 8_192;
/// Error text of a subagent that was still running when its run ended.
const STOPPED: &str = "the run ended before the task";

/// Running subagents with the last event of each.
#[derive(Debug, Default)]
pub(crate) struct OpenSubagents(Vec<SubagentEvent>);

impl OpenSubagents {
    pub(crate) fn on_event(&mut self, event: &SubagentEvent) {
        self.0.retain(|open| open.task_id != event.task_id);
        if !matches!(event.news, SubagentUpdate::Ended { .. }) {
            self.0.push(event.clone());
        }
    }

    /// Returns events that cancel the running subagents.
    pub(crate) fn cancelled(&self) -> Vec<SubagentEvent> {
        let ended = || SubagentUpdate::Ended {
            status: SubagentStatus::Cancelled,
            text: STOPPED.to_owned(),
        };
        self.0
            .iter()
            .map(|open| SubagentEvent {
                news: ended(),
                ..open.clone()
            })
            .collect()
    }
}

/// Returns type, content and metadata of the journal row of an event.
pub(crate) fn row(event: &SubagentEvent) -> (&'static str, Value, Map<String, Value>) {
    let mut metadata = Map::from_iter([("task_id".to_owned(), json!(event.task_id))]);
    let mut content = metadata.clone();
    let kind = match &event.news {
        SubagentUpdate::Started { description } => {
            content.insert("description".to_owned(), clipped(description).0.into());
            "subagent.start"
        }
        SubagentUpdate::Said { message, index, .. } => {
            content.insert("message_index".to_owned(), json!(index));
            metadata.insert("message_index".to_owned(), json!(index));
            content.extend(message_fields(message));
            "subagent.step"
        }
        SubagentUpdate::Ended { status, text } => {
            content.insert("status".to_owned(), json!(status));
            content.insert("model_name".to_owned(), json!(event.model_name));
            if !event.usage.is_zero() {
                content.insert("usage".to_owned(), json!(event.usage));
            }
            let (text, is_cut) = clipped(text);
            content.insert(status.text_key().to_owned(), text.into());
            if is_cut {
                content.insert(format!("{}_truncated", status.text_key()), true.into());
            }
            "subagent.end"
        }
    };
    (kind, content.into(), metadata)
}

fn message_fields(message: &Message) -> Map<String, Value> {
    let (text, is_cut) = clipped(&message.content.text());
    let mut fields = Map::from_iter([
        ("kind".to_owned(), json!(message.type_name())),
        ("text".to_owned(), text.into()),
        ("truncated".to_owned(), is_cut.into()),
    ]);
    match &message.kind {
        MessageKind::Tool { .. } => fields.insert("tool_name".to_owned(), json!(message.name)),
        kind => {
            let unreadable = if let MessageKind::Ai {
                invalid_tool_calls, ..
            } = kind
            {
                invalid_tool_calls.as_slice()
            } else {
                &[]
            };
            if !unreadable.is_empty() {
                fields.insert(
                    "invalid_tool_calls".to_owned(),
                    unreadable.iter().map(encode_invalid_call).collect(),
                );
            }
            fields.insert(
                "tool_calls".to_owned(),
                message
                    .tool_calls()
                    .iter()
                    .map(|call| encode_call(&call.name, &call.args))
                    .collect(),
            )
        }
    };
    fields
}

fn encode_invalid_call(call: &InvalidToolCall) -> Value {
    match clipped(call.args.as_deref().unwrap_or_default()) {
        (args, false) => json!({ "name": call.name, "args": args }),
        (beginning, true) => {
            json!({ "name": call.name, "args": beginning, "args_truncated": true })
        }
    }
}

/// Encodes a call. Long arguments are truncated to the beginning of their JSON text.
fn encode_call(name: &str, args: &Map<String, Value>) -> Value {
    let written = Value::Object(args.clone()).to_string();
    match clipped(&written) {
        (_, false) => json!({ "name": name, "args": args }),
        (beginning, true) => json!({ "name": name, "args": beginning, "args_truncated": true }),
    }
}

fn clipped(text: &str) -> (String, bool) {
    match text.char_indices().nth(MAX_TEXT_CHARS) {
        Some((end, _)) => (text[..end].to_owned(), true),
        None => (text.to_owned(), false),
    }
}

#[cfg(test)]
#[path = "subagents_tests.rs"]
mod tests;
