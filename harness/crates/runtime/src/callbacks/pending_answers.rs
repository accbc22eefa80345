//! Answers that hooks may still change before they are journaled.

use serde_json::{Map, Value};

use deerflow_core::messages::Message;
use deerflow_core::state::ThreadState;

/// Answers of a run that are not journaled yet.
#[derive(Debug, Default)]
pub(super) struct PendingAnswers(Vec<PendingAnswer>);

/// Answer in its current version.
#[derive(Debug)]
pub(super) struct PendingAnswer {
    pub(super) message: Message,
    pub(super) metadata: Map<String, Value>,
    pub(super) state: AnswerState,
}

/// State of an answer in the thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AnswerState {
    /// Not yet in the state of the thread.
    New,
    InThread,
    /// Removed from the thread by a hook.
    Removed,
}

impl PendingAnswers {
    pub(super) fn push(&mut self, message: Message, metadata: Map<String, Value>) {
        self.0.push(PendingAnswer {
            message,
            metadata,
            state: AnswerState::New,
        });
    }

    /// Updates the answers from the state of the thread.
    pub(super) fn update(&mut self, state: &ThreadState) {
        for answer in &mut self.0 {
            match state
                .messages()
                .iter()
                .rfind(|message| message.id.is_some() && message.id == answer.message.id)
            {
                Some(now) => (answer.message, answer.state) = (now.clone(), AnswerState::InThread),
                None if answer.state == AnswerState::InThread => {
                    answer.state = AnswerState::Removed
                }
                None => {}
            }
        }
    }

    /// Takes the answers that hooks no longer change. Empty answers at the end of the list remain
    /// pending: they are removed when the model returns a text.
    pub(super) fn take_final(&mut self) -> Vec<PendingAnswer> {
        let empty_tail = self
            .0
            .iter()
            .rev()
            .take_while(|answer| answer.is_empty())
            .count();
        self.0.drain(..self.0.len() - empty_tail).collect()
    }

    /// Takes all answers.
    pub(super) fn take_all(&mut self) -> Vec<PendingAnswer> {
        std::mem::take(&mut self.0)
    }
}

impl PendingAnswer {
    fn is_empty(&self) -> bool {
        self.state != AnswerState::Removed
            && self.message.call_ids().next().is_none()
            && self.message.is_blank()
    }
}
