//! Collects the answer that is being streamed, so that a cancel does not lose the text that
//! subscribers have received.

use deerflow_core::messages::{Message, MessageAccumulator, MessageChunk};

/// Message in progress.
#[derive(Debug, Default)]
pub(super) struct PartialAnswer(Option<MessageAccumulator>);

impl PartialAnswer {
    /// Adds a fragment. After the last one, the message is retained until a step has it in its
    /// state.
    pub(super) fn push(&mut self, chunk: &MessageChunk) {
        if self
            .0
            .as_ref()
            .is_none_or(|current| current.id() != chunk.id)
        {
            self.0 = Some(MessageAccumulator::new(chunk.id.clone()));
        }
        if let Some(current) = &mut self.0 {
            current.push(chunk);
        }
    }

    /// Discards the message, because the state has it or it is not needed.
    pub(super) fn clear(&mut self) {
        self.0 = None;
    }

    /// Takes a message that did not reach the state.
    pub(super) fn take(&mut self) -> Option<Message> {
        self.0.take().and_then(MessageAccumulator::finish_partial)
    }
}
