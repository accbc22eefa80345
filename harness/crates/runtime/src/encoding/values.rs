//! JSON of a whole state, built from the cached JSON of its messages: only new messages are
//! serialized.

use bytes::{BufMut, Bytes, BytesMut};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::frames::to_bytes;
use crate::agent::TaskInput;
use crate::stream_bridge::EventData;
use deerflow_core::messages::Message;
use deerflow_core::state::ThreadState;

/// Estimated bytes of a state without its messages.
const ENVELOPE_BYTES: usize = 512;

/// Size of a message's JSON, in bytes, from which the JSON of a state shares it with the message.
/// Smaller ones are copied into one piece.
const MIN_SHARED_BYTES: usize = 64 << 10;

/// The same for a state with at least [`LARGE_STATE`] bytes of messages. A smaller copy uses less
/// memory than a piece.
const MIN_SHARED_BYTES_OF_LARGE: usize = 512;
const LARGE_STATE: usize = 1 << 20;

/// Serializes the state, with pending interrupts under `__interrupt__`. Interrupts are never part
/// of a stored state.
pub fn values_json(state: &ThreadState, questions: &[Value]) -> Bytes {
    values_data(state, questions).into_bytes()
}

/// Serializes the state like [`values_json`], in pieces: large messages are not copied.
pub(crate) fn values_data(state: &ThreadState, questions: &[Value]) -> EventData {
    let messages = state.messages();
    let mut json = Pieces::for_messages(messages);
    json.put_first_messages(messages);
    json.put_channels(state, questions);
    json.into_pieces().into()
}

/// Returns the number of bytes of the messages as JSON, with separators.
pub(super) fn messages_len(messages: &[Message]) -> usize {
    messages.iter().map(|message| json_len(message) + 1).sum()
}

fn json_len(message: &Message) -> usize {
    message.json().get().len()
}

/// JSON of a state or of a part of it, in pieces.
pub(super) struct Pieces {
    finished: Vec<Bytes>,
    last: BytesMut,
    min_shared: usize,
}

impl Pieces {
    /// Creates an empty list whose buffer has room for the small ones of these messages and for the
    /// part after them.
    pub(super) fn for_messages(messages: &[Message]) -> Self {
        // One pass: each access to a message of a long conversation costs a cache miss.
        let (mut total, mut copied, mut copied_of_large) = (0, 0, 0);
        for len in messages.iter().map(json_len) {
            let copied_below = |min: usize| if len < min { len + 1 } else { 1 };
            total += len + 1;
            copied += copied_below(MIN_SHARED_BYTES);
            copied_of_large += copied_below(MIN_SHARED_BYTES_OF_LARGE);
        }
        let (min_shared, copied) = match total {
            0..LARGE_STATE => (MIN_SHARED_BYTES, copied),
            _ => (MIN_SHARED_BYTES_OF_LARGE, copied_of_large),
        };
        Self {
            finished: Vec::new(),
            last: BytesMut::with_capacity(copied + ENVELOPE_BYTES),
            min_shared,
        }
    }

    /// Writes the beginning of a state, up to and including these messages.
    pub(super) fn put_first_messages(&mut self, messages: &[Message]) {
        self.last.put_slice(br#"{"messages":["#);
        self.put_messages(messages, true);
    }

    /// Writes messages with separators. `is_first` is `true` if none precedes them.
    pub(super) fn put_messages(&mut self, messages: &[Message], is_first: bool) {
        for (at, message) in messages.iter().enumerate() {
            if at > 0 || !is_first {
                self.last.put_u8(b',');
            }
            if json_len(message) < self.min_shared {
                self.last.put_slice(message.json().get().as_bytes());
            } else {
                self.finished.push(self.last.split().freeze());
                self.finished.push(message.json_bytes());
            }
        }
    }

    /// Writes the part of a state after its messages.
    pub(super) fn put_channels(&mut self, state: &ThreadState, questions: &[Value]) {
        let json = &mut self.last;
        json.put_u8(b']');
        let channels = state
            .wire_channels()
            .map(|(name, value)| (name, to_bytes(value)));
        let interrupts_field =
            (!questions.is_empty()).then(|| ("__interrupt__", to_bytes(&interrupts(questions))));
        for (name, value) in channels.chain(interrupts_field) {
            json.put_u8(b',');
            json.put_slice(&to_bytes(&name));
            json.put_u8(b':');
            json.put_slice(&value);
        }
        json.put_u8(b'}');
    }

    pub(super) fn into_pieces(mut self) -> Vec<Bytes> {
        if !self.last.is_empty() {
            self.finished.push(self.last.freeze());
        }
        self.finished
    }
}

/// Serializes the state as a part of larger JSON.
pub(super) fn values_raw(state: &ThreadState) -> Box<RawValue> {
    let json = String::from_utf8(values_json(state, &[]).into()).unwrap_or_default();
    RawValue::from_string(json).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

/// Returns the input of a task as JSON.
pub(super) fn input_raw(input: &TaskInput) -> Box<RawValue> {
    match input {
        TaskInput::State(state) => values_raw(state),
        TaskInput::Call(call) => serde_json::value::to_raw_value(&[&**call])
            .unwrap_or_else(|_| RawValue::NULL.to_owned()),
    }
}

/// Returns the interrupts as streams and waiting callers get them, with a null `response_schema`
/// where none is set.
pub(super) fn interrupts(questions: &[Value]) -> Vec<Value> {
    let with_schema = |question: &Value| match question {
        Value::Object(fields) if !fields.contains_key("response_schema") => {
            let mut fields = fields.clone();
            fields.insert("response_schema".to_owned(), Value::Null);
            Value::Object(fields)
        }
        Value::Object(_) => question.clone(),
        other => json!({ "value": other }),
    };
    questions.iter().map(with_schema).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use deerflow_core::ids::SeededIds;
    use deerflow_core::messages::SERIALIZED;
    use deerflow_core::state::StateUpdate;

    #[test]
    fn state_json_equals_json_of_its_parts() {
        let mut state = ThreadState::default();
        assert_eq!(&values_json(&state, &[])[..], br#"{"messages":[]}"#);
        let update = StateUpdate::messages([Message::human("a\"b"), Message::ai("ü")])
            .and("title", json!("T"));
        state.apply(update, &SeededIds::new(1)).unwrap();
        let read: Value = serde_json::from_slice(&values_json(&state, &[])).unwrap();
        assert_eq!(read, json!(state));
        let with_interrupts: Value =
            serde_json::from_slice(&values_json(&state, &[json!({ "value": 1, "id": "q" })]))
                .unwrap();
        assert_eq!(
            with_interrupts["__interrupt__"],
            json!([{ "value": 1, "id": "q", "response_schema": null }])
        );
        assert_eq!(with_interrupts["title"], "T");
    }

    /// Returns the number of messages that are serialized for the frame of a state.
    fn serialized_for(state: &ThreadState) -> usize {
        let before = SERIALIZED.get();
        assert_eq!(
            values_json(state, &[]),
            Bytes::from(serde_json::to_vec(state).unwrap())
        );
        SERIALIZED.get() - before
    }

    #[test]
    fn only_new_messages_of_long_state_are_serialized() {
        let ids = SeededIds::new(1);
        let numbered = |n: usize| {
            Message::human(format!("text {n}")).with(|body| body.id = Some(format!("m{n}")))
        };
        let mut state = ThreadState::default();
        state
            .apply(StateUpdate::messages((0..500).map(numbered)), &ids)
            .unwrap();
        assert_eq!(serialized_for(&state), 500);
        assert_eq!(serialized_for(&state), 0);
        let changed = numbered(7).with(|body| body.content = "other".into());
        state
            .apply(
                StateUpdate::messages([numbered(500), changed, Message::remove("m3")]),
                &ids,
            )
            .unwrap();
        assert_eq!(serialized_for(&state), 2);
        // Messages that are read from a store already contain their JSON.
        let stored: Vec<String> = state
            .messages()
            .iter()
            .map(|message| message.json().get().to_owned())
            .collect();
        let read = stored
            .iter()
            .map(|json| Message::from_stored(json).unwrap())
            .zip(1..);
        let restored = ThreadState::restored(
            read.map(|(message, position)| (position, message)),
            Default::default(),
        );
        assert_eq!(serialized_for(&restored), 0);
    }
}
