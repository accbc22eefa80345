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

/// Bytes that a state occupies, with everything that its messages cache. It counts caches that are
/// still empty and values that clones share. The size of a message never
/// changes, so that it can be subtracted when the message is removed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StateSize {
    conversation: usize,
    rest: usize,
}

impl StateSize {
    /// Measures a state.
    pub(crate) fn of(state: &ThreadState) -> Self {
        Self {
            conversation: state.messages().iter().map(message_bytes).sum(),
            rest: rest_bytes(state),
        }
    }

    /// Measures a state that followed `earlier`, which has this size. Messages that both have are
    /// only compared, because each access to a message of a long conversation costs a cache miss.
    pub(crate) fn followed_by(self, state: &ThreadState, earlier: &ThreadState) -> Self {
        let mut conversation = self.conversation;
        let (new, old) = (state.messages(), earlier.messages());
        for at in 0..new.len().max(old.len()) {
            match (new.get(at), old.get(at)) {
                (Some(new), Some(old)) if new.is_same(old) => {}
                (new, old) => {
                    conversation += new.map_or(0, message_bytes);
                    conversation -= old.map_or(0, message_bytes);
                }
            }
        }
        let rest = rest_bytes(state);
        Self { conversation, rest }
    }

    /// Returns the number of bytes.
    pub(crate) fn bytes(self) -> usize {
        self.conversation + self.rest
    }
}

/// Returns the bytes of a state without its conversation.
fn rest_bytes(state: &ThreadState) -> usize {
    let histories = state.histories().iter();
    let histories = histories
        .flat_map(|(_, messages)| messages.map(message_bytes))
        .sum::<usize>();
    let channels = state.channels().iter();
    let channels = channels
        .map(|(name, value)| FIELD_BYTES + name.len() + value_bytes(value))
        .sum::<usize>();
    STATE_BYTES + histories + channels
}

/// Returns the bytes of a message: its fields, its JSON and its JSON in the format of a provider, which
/// a large message does not cache.
fn message_bytes(message: &Message) -> usize {
    let fields = MESSAGE_BYTES + fields_bytes(message);
    let json = message.json().get().len();
    let cached_json = if message.is_large() { json } else { 2 * json };
    fields + cached_json
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
        StateSize::of(&state).bytes() / TEXT
    }

    #[test]
    fn every_cached_copy_of_a_text_counts() {
        let text = || "x".repeat(TEXT);
        assert_eq!(copies(Message::human(text())), 3);
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
        assert!(StateSize::of(&state).bytes() >= 10_000 * size_of::<Value>());
    }
    #[test]
    fn size_after_a_change_equals_a_new_measurement() {
        let ids = SeededIds::new(1);
        let mut earlier = ThreadState::default();
        let texts = ["first", "second", "third"].map(Message::human);
        earlier.apply(StateUpdate::messages(texts), &ids).unwrap();
        let size = StateSize::of(&earlier);
        let first = earlier.messages()[0].clone();
        let longer = first.with(|body| body.content = "a longer text".into());
        let removed = Message::remove(first.id.clone().unwrap());
        let channel = StateUpdate::channel("title", json!("a title"));
        for update in [
            StateUpdate::messages([Message::ai("appended")]),
            StateUpdate::messages([longer]),
            StateUpdate::messages([removed]),
            channel,
        ] {
            let mut state = earlier.clone();
            state.apply(update, &ids).unwrap();
            let after = size.followed_by(&state, &earlier).bytes();
            assert_ne!(after, size.bytes());
            assert_eq!(after, StateSize::of(&state).bytes());
        }
    }
}
