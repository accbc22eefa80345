//! Frames of whole states that share the JSON of their messages: a run sends its state several
//! times, and most messages are the same each time.

use bytes::Bytes;
use serde_json::Value;

use super::values::{Pieces, messages_len};
use crate::stream_bridge::EventData;
use deerflow_core::messages::Message;
use deerflow_core::state::ThreadState;

/// Beginning of the states of a run, up to the messages that its frames share.
#[derive(Debug, Default)]
pub(super) struct SharedMessages {
    messages: Vec<Message>,
    /// JSON up to these messages; empty before the first frame.
    json: Vec<Bytes>,
    /// Length of this JSON, in bytes.
    len: usize,
    /// Last frame.
    last: EventData,
    /// Messages of the last frame, or those that replace them without a frame of their own.
    sent: Vec<Message>,
}

impl SharedMessages {
    /// Serializes the state as [`values_json`](super::values::values_json) does. Returns `None` if
    /// the last frame has the same bytes.
    pub(super) fn changed_values(
        &mut self,
        state: &ThreadState,
        questions: &[Value],
    ) -> Option<EventData> {
        let data = self.values(state, questions);
        if data.has_pieces_of(&self.last) {
            return None;
        }
        self.last = data.clone();
        self.set_sent(state);
        Some(data)
    }

    /// Treats the messages of `state`, which replaces the last state, as sent: they need no frame of
    /// their own.
    pub(super) fn replace_sent(&mut self, state: &ThreadState) {
        if !self.are_first_of(state.messages()) {
            // No frame can share them any more, and they may be large.
            (self.messages, self.json) = Default::default();
        }
        self.set_sent(state);
    }

    fn set_sent(&mut self, state: &ThreadState) {
        self.sent = state.messages().to_vec();
    }

    /// Reports whether the messages of `state` are sent. Compares identities only.
    pub(super) fn sent_messages_of(&self, state: &ThreadState) -> bool {
        let messages = state.messages();
        let mut pairs = self.sent.iter().zip(messages);
        self.sent.len() == messages.len() && pairs.all(|(sent, message)| sent.is_same(message))
    }

    fn values(&mut self, state: &ThreadState, questions: &[Value]) -> EventData {
        let messages = state.messages();
        let is_shared = self.are_first_of(messages);
        let mut new = &messages[if is_shared { self.messages.len() } else { 0 }..];
        // New messages become part of the shared beginning once they are a large part of a frame.
        let is_reset = !is_shared || messages_len(new) > self.len / 2;
        if is_reset {
            // The agent may complete the newest message of a user before the next frame.
            let is_complete = messages.last().is_none_or(|last| !last.is_human());
            let shared = messages.len() - usize::from(!is_complete);
            let mut json = Pieces::for_messages(&messages[..shared]);
            json.put_first_messages(&messages[..shared]);
            (self.messages, self.json) = (messages[..shared].to_vec(), json.into_pieces());
            self.len = self.json.iter().map(Bytes::len).sum();
            new = &messages[shared..];
        }
        let mut tail = Pieces::for_messages(new);
        tail.put_messages(new, self.messages.is_empty());
        tail.put_channels(state, questions);
        let tail = tail.into_pieces();
        if is_reset {
            [&self.json[..], &tail].concat().into()
        } else {
            EventData::continuing(&self.json, &tail)
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
#[path = "shared_messages_tests.rs"]
mod tests;
