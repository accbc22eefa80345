//! The `messages` mode: each new fragment sends the whole message accumulated so far.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::{Value, json};

use super::frames::Frame;
use super::langgraph::add_host;
use super::open_messages::OpenMessages;
use super::run_facts::RunFacts;
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
        meta: impl FnOnce() -> Value,
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

/// Returns the metadata of a message, merged over the metadata of its run.
pub(super) fn described(meta: &MessageMeta, run: Option<&RunFacts>) -> Value {
    let (run, message_fields) = match (run, json!(meta)) {
        (Some(run), Value::Object(message_fields)) => (run, message_fields),
        (_, message_fields) => return message_fields,
    };
    let mut fields = run.metadata.clone();
    fields.insert("run_attempt".to_owned(), run.attempt.into());
    add_host(&mut fields);
    fields.extend(message_fields);
    fields.into()
}
