//! The `messages` mode: the same message again and again, each time with more of its text.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::frames::Frame;
use crate::messages::{Message, MessageAccumulator, MessageChunk};

/// Turns fragments into accumulated messages. One message is under way at a time.
#[derive(Debug, Default)]
pub(super) struct Accumulating {
    current: Option<MessageAccumulator>,
    announced: HashSet<String>,
}

impl Accumulating {
    /// A streamed message is never told as complete: its last fragment is its end.
    pub(super) fn token(
        &mut self,
        chunk: &MessageChunk,
        meta: impl FnOnce() -> Value,
        frames: &mut Vec<Frame>,
    ) {
        if self
            .current
            .as_ref()
            .is_none_or(|current| current.id() != chunk.id)
        {
            self.current = Some(MessageAccumulator::new(chunk.id.clone()));
        }
        self.announce(&chunk.id, meta, frames);
        if let Some(current) = &mut self.current {
            current.push(chunk);
            frames.push(Frame::new("messages/partial", &[current.so_far()]));
        }
    }

    pub(super) fn whole(
        &mut self,
        message: &Message,
        meta: impl FnOnce() -> Value,
        frames: &mut Vec<Frame>,
    ) {
        self.announce(message.id.as_deref().unwrap_or_default(), meta, frames);
        frames.push(Frame::new("messages/complete", &[message]));
    }

    fn announce(&mut self, id: &str, meta: impl FnOnce() -> Value, frames: &mut Vec<Frame>) {
        if self.announced.insert(id.to_owned()) {
            frames.push(Frame::new(
                "messages/metadata",
                &json!({ id: { "metadata": meta() } }),
            ));
        }
    }
}
