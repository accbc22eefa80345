//! The `messages` mode: each new fragment sends the whole message accumulated so far.

use std::collections::HashSet;
use std::sync::Arc;

use serde::Serialize;
use serde_json::json;

use super::frames::Frame;
use super::open_messages::OpenMessages;
use crate::agent::{MessageMeta, StepEvent};
use deerflow_core::messages::{Message, MessageChunk};

/// Accumulates fragments into messages.
#[derive(Debug, Default)]
pub(super) struct Accumulating {
    open: OpenMessages,
    announced: HashSet<String>,
}

impl Accumulating {
    /// Encodes a fragment. A streamed message has no `messages/complete` frame; its last fragment
    /// marks its end.
    pub(super) fn token(
        &mut self,
        chunk: &MessageChunk,
        origin: &Arc<MessageMeta>,
        meta: &impl Serialize,
        frames: &mut Vec<Frame>,
    ) {
        self.open.push(chunk, origin);
        self.announce(&chunk.id, meta, frames);
        if let Some(message) = self.open.newest() {
            frames.push(Frame::new("messages/partial", &[message]));
        }
    }

    /// Releases the messages that a step ends.
    pub(super) fn end_step(&mut self, step: &StepEvent) {
        self.open.end_step(step);
    }

    pub(super) fn whole(
        &mut self,
        message: &Message,
        meta: &impl Serialize,
        frames: &mut Vec<Frame>,
    ) {
        self.announce(message.id.as_deref().unwrap_or_default(), meta, frames);
        frames.push(Frame::new("messages/complete", &[message]));
    }

    fn announce(&mut self, id: &str, meta: &impl Serialize, frames: &mut Vec<Frame>) {
        if self.announced.insert(id.to_owned()) {
            frames.push(Frame::new(
                "messages/metadata",
                &json!({ id: { "metadata": meta } }),
            ));
        }
    }
}
