//! Frames of whole states that share the JSON of their messages: a run sends its state several
//! times, and most messages are the same each time.

use bytes::{Bytes, BytesMut};
use serde_json::Value;

use super::values::{ENVELOPE_BYTES, messages_len, put_channels, put_first_messages, put_messages};
use crate::stream_bridge::EventData;
use deerflow_core::messages::Message;
use deerflow_core::state::ThreadState;

/// Beginning of the states of a run, up to the messages that its frames share.
#[derive(Debug, Default)]
pub(super) struct SharedMessages {
    messages: Vec<Message>,
    json: Bytes,
}

impl SharedMessages {
    /// Serializes the state as [`values_json`](super::values::values_json) does.
    pub(super) fn values(&mut self, state: &ThreadState, questions: &[Value]) -> EventData {
        let messages = state.messages();
        let is_shared = self.are_first_of(messages);
        let mut new = &messages[if is_shared { self.messages.len() } else { 0 }..];
        // New messages become part of the shared beginning once they are a large part of a frame.
        let is_reset = !is_shared || messages_len(new) > self.json.len() / 2;
        if is_reset {
            let mut json = BytesMut::with_capacity(messages_len(messages) + ENVELOPE_BYTES);
            put_first_messages(messages, &mut json);
            (self.messages, self.json) = (messages.to_vec(), json.freeze());
            new = &[];
        }
        let mut tail = BytesMut::with_capacity(messages_len(new) + ENVELOPE_BYTES);
        put_messages(new, self.messages.is_empty(), &mut tail);
        put_channels(state, questions, &mut tail);
        let (head, tail) = (self.json.clone(), tail.freeze());
        if is_reset {
            EventData::of_pieces(head, tail)
        } else {
            EventData::with_head(head, tail)
        }
    }

    /// Reports whether these messages begin with the shared ones. Compares identities only: equal
    /// messages of different origin are serialized again.
    fn are_first_of(&self, messages: &[Message]) -> bool {
        !self.json.is_empty()
            && messages.len() >= self.messages.len()
            && self
                .messages
                .iter()
                .zip(messages)
                .all(|(shared, message)| shared.is_same(message))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::encoding::values_json;
    use deerflow_core::ids::SeededIds;
    use deerflow_core::state::StateUpdate;

    fn message(n: usize) -> Message {
        Message::human(format!("text {n}")).with(|body| body.id = Some(format!("m{n}")))
    }

    /// Returns the frame of a state and the number of bytes that it adds to memory.
    fn frame(shared: &mut SharedMessages, state: &ThreadState) -> usize {
        let questions = [json!({ "value": 1, "id": "q" })];
        let with_questions = shared.values(state, &questions);
        let expected = values_json(state, &questions);
        assert_eq!(with_questions.into_bytes(), expected);
        let data = shared.values(state, &[]);
        let own = data.own_len();
        assert_eq!(data.into_bytes(), values_json(state, &[]));
        own
    }

    #[test]
    fn frames_equal_the_json_of_their_states() {
        let (mut state, mut shared) = (ThreadState::default(), SharedMessages::default());
        let ids = SeededIds::new(1);
        frame(&mut shared, &state);
        let updates = [
            StateUpdate::messages([message(1)]),
            StateUpdate::messages((2..60).map(message)),
            StateUpdate::messages([message(60)]).and("title", json!("T")),
            StateUpdate::messages([Message::remove("m60")]),
            StateUpdate::messages([message(3).with(|body| body.content = "other".into())]),
            StateUpdate::messages((61..200).map(message)),
            StateUpdate::messages((100..200).map(|n| Message::remove(format!("m{n}")))),
        ];
        for update in updates {
            state.apply(update, &ids).unwrap();
            frame(&mut shared, &state);
        }
    }

    #[test]
    fn frame_of_one_more_message_adds_only_its_bytes() {
        let (mut state, mut shared) = (ThreadState::default(), SharedMessages::default());
        let ids = SeededIds::new(1);
        let many = StateUpdate::messages((0..500).map(message));
        state.apply(many, &ids).unwrap();
        frame(&mut shared, &state);
        let one = StateUpdate::messages([message(500)]);
        state.apply(one, &ids).unwrap();
        assert!(frame(&mut shared, &state) < 1_000);
    }
}
