//! Size of a thread's state in memory.

use serde_json::{Map, Value};

use deerflow_core::messages::{Content, InvalidToolCall, Message, MessageKind, ToolCall};
use deerflow_core::state::ThreadState;

/// Bytes of a state without its messages and values.
const STATE_BYTES: usize = 1 << 10;
/// Bytes of a message without its texts and values.
const MESSAGE_BYTES: usize = 1 << 9;
/// Bytes of a field of an object without its key and value.
const FIELD_BYTES: usize = 64;

/// Returns the bytes that a state occupies, with everything that its messages cache. It is an upper
/// bound: it counts caches that are still empty and values that clones share.
pub(super) fn state_bytes(state: &ThreadState) -> usize {
    let messages = state.messages().iter().map(message_bytes).sum::<usize>();
    let histories = state.histories().iter();
    let histories = histories
        .flat_map(|(_, messages)| messages.map(message_bytes))
        .sum::<usize>();
    let channels = state.channels().iter();
    let channels = channels
        .map(|(name, value)| FIELD_BYTES + name.len() + value_bytes(value))
        .sum::<usize>();
    STATE_BYTES + messages + histories + channels
}

/// Returns the bytes of a message: its fields, its JSON and its JSON in the format of a provider. A
/// user's message also holds a framed copy, of which the main model receives another provider JSON.
fn message_bytes(message: &Message) -> usize {
    let fields = MESSAGE_BYTES + fields_bytes(message);
    let json = message.json().get().len();
    match message.is_human() {
        true => 2 * fields + 3 * json,
        false => fields + 2 * json,
    }
}

fn fields_bytes(message: &Message) -> usize {
    let content = match &message.content {
        Content::Text(text) => text.capacity(),
        Content::Blocks(blocks) => blocks.iter().map(value_bytes).sum(),
    };
    let kind = match &message.kind {
        MessageKind::Ai {
            tool_calls,
            invalid_tool_calls,
            ..
        } => {
            let calls = tool_calls.iter().map(call_bytes).sum::<usize>();
            calls
                + invalid_tool_calls
                    .iter()
                    .map(invalid_call_bytes)
                    .sum::<usize>()
        }
        MessageKind::Tool { artifact, .. } => value_bytes(artifact),
        MessageKind::Human | MessageKind::System | MessageKind::Remove => 0,
    };
    let maps = [&message.additional_kwargs, &message.response_metadata];
    content + kind + maps.into_iter().map(fields_of).sum::<usize>()
}

fn call_bytes(call: &ToolCall) -> usize {
    size_of::<ToolCall>() + FIELD_BYTES + call.name.len() + fields_of(&call.args)
}

fn invalid_call_bytes(call: &InvalidToolCall) -> usize {
    let args = call.args.as_ref().map_or(0, String::capacity);
    size_of::<InvalidToolCall>() + FIELD_BYTES + args
}

fn value_bytes(value: &Value) -> usize {
    let content = match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => text.capacity(),
        Value::Array(items) => items.iter().map(value_bytes).sum(),
        Value::Object(fields) => fields_of(fields),
    };
    size_of::<Value>() + content
}

fn fields_of(fields: &Map<String, Value>) -> usize {
    let field = |(name, value): (&String, &Value)| FIELD_BYTES + name.len() + value_bytes(value);
    fields.iter().map(field).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use deerflow_core::ids::SeededIds;
    use deerflow_core::state::StateUpdate;
    use serde_json::json;

    const TEXT: usize = 100_000;

    /// Returns how often the text of a message counts.
    fn copies(message: Message) -> usize {
        let mut state = ThreadState::default();
        let update = StateUpdate::messages([message]);
        state.apply(update, &SeededIds::new(1)).unwrap();
        state_bytes(&state) / TEXT
    }

    #[test]
    fn every_cached_copy_of_a_text_counts() {
        let text = || "x".repeat(TEXT);
        assert_eq!(copies(Message::human(text())), 5);
        assert_eq!(copies(Message::ai(text())), 3);
        let in_a_block = Message::ai("").with(|body| {
            body.content = Content::Blocks(vec![json!({"type": "text", "text": text()})]);
        });
        assert_eq!(copies(in_a_block), 3);
        let args = Map::from_iter([("text".to_owned(), json!(text()))]);
        let call = Message::ai("").with(|body| {
            body.kind = MessageKind::Ai {
                tool_calls: vec![ToolCall::new("c", "write", args)],
                invalid_tool_calls: vec![],
                usage_metadata: None,
            };
        });
        assert_eq!(copies(call), 3);
        let with_spare_capacity = Message::ai("").with(|body| {
            let mut text = text();
            text.reserve_exact(TEXT);
            (body.id, body.content) = (Some("m".to_owned()), text.into());
        });
        assert_eq!(copies(with_spare_capacity), 4);
    }

    #[test]
    fn values_of_channels_count_as_values_not_as_json() {
        let mut state = ThreadState::default();
        state.set_channels([("marks".to_owned(), json!(vec![1; 10_000]))].into());
        assert!(state_bytes(&state) >= 10_000 * size_of::<Value>());
    }
}
