//! Messages that are being streamed, one per message id: parallel nodes stream at the same time.

use std::collections::HashSet;
use std::sync::Arc;

use crate::agent::{MessageMeta, StepEvent};
use deerflow_core::messages::{Message, MessageAccumulator, MessageChunk};

/// Messages in progress, in the order of their newest fragments.
#[derive(Debug, Default)]
pub(crate) struct OpenMessages(Vec<OpenMessage>);

#[derive(Debug)]
struct OpenMessage {
    received: MessageAccumulator,
    meta: Arc<MessageMeta>,
    /// `true` after the last fragment.
    is_complete: bool,
}

impl OpenMessage {
    /// Returns the `node:task id` that streams the message; empty if the agent does not state it.
    fn task(&self) -> &str {
        task_of(&self.meta)
    }
}

fn task_of(meta: &MessageMeta) -> &str {
    let namespace = &meta.langgraph_checkpoint_ns;
    namespace.rsplit('|').next().unwrap_or_default()
}

impl OpenMessages {
    /// Adds a fragment. The first one of a message releases complete messages of the same task.
    pub(crate) fn push(&mut self, chunk: &MessageChunk, meta: &Arc<MessageMeta>) {
        let known = self
            .0
            .iter()
            .position(|message| message.received.id() == chunk.id);
        let mut message = match known {
            Some(at) => self.0.remove(at),
            None => {
                self.0
                    .retain(|earlier| !(earlier.is_complete && earlier.task() == task_of(meta)));
                OpenMessage {
                    received: MessageAccumulator::new(chunk.id.clone()),
                    meta: meta.clone(),
                    is_complete: false,
                }
            }
        };
        message.received.push(chunk);
        message.is_complete |= chunk.chunk_position.is_some();
        self.0.push(message);
    }

    /// Returns the message of the newest fragment, as far as it is received.
    pub(crate) fn newest(&self) -> Option<Message> {
        self.0.last().map(|message| message.received.so_far())
    }

    /// Releases the messages whose tasks are no longer pending after a step, and those that its
    /// state has.
    pub(crate) fn end_step(&mut self, step: &StepEvent) {
        if self.0.is_empty() {
            return;
        }
        let pending: HashSet<String> = step.next.iter().map(|task| task.namespace()).collect();
        let in_state = |id: &str| {
            let stored = step.state.messages();
            stored.iter().any(|stored| stored.id.as_deref() == Some(id))
        };
        self.0
            .retain(|message| pending.contains(message.task()) && !in_state(message.received.id()));
    }

    /// Takes the messages as partial ones, in the order of their newest fragments. A task has one:
    /// a later message supersedes an earlier one, such as that of a failed attempt.
    pub(crate) fn take_partial(&mut self) -> Vec<Message> {
        let mut tasks = HashSet::new();
        let mut newest: Vec<OpenMessage> = std::mem::take(&mut self.0)
            .into_iter()
            .rev()
            .filter(|message| message.task().is_empty() || tasks.insert(message.task().to_owned()))
            .collect();
        newest.reverse();
        newest
            .into_iter()
            .filter_map(|message| message.received.finish_partial())
            .collect()
    }
}

#[cfg(test)]
#[path = "open_messages_tests.rs"]
mod tests;
