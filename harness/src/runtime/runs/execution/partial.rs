//! Collects the answer that is being streamed, so that a cancel does not lose what viewers have read.

use crate::messages::{Message, MessageAccumulator, MessageChunk};

/// The message under way, if one is.
#[derive(Debug, Default)]
pub(super) struct PartialAnswer(Option<MessageAccumulator>);

impl PartialAnswer {
    /// Takes a fragment. The closing one leaves the whole in place until a step has it in its state.
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

    /// The message has reached the state, or is not wanted.
    pub(super) fn clear(&mut self) {
        self.0 = None;
    }

    /// What is left to keep of a message that never reached the state.
    pub(super) fn take(&mut self) -> Option<Message> {
        self.0.take().and_then(MessageAccumulator::finish_partial)
    }
}
