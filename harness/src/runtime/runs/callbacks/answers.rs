//! Answers that guards may still change, before they enter the journal of a run.

use serde_json::{Map, Value};

use crate::messages::Message;
use crate::state::ThreadState;

/// The answers of a run since the last that its guards are done with.
#[derive(Debug, Default)]
pub(super) struct AwaitedAnswers(Vec<Awaited>);

/// An answer, as the thread has it by now.
#[derive(Debug)]
pub(super) struct Awaited {
    pub(super) message: Message,
    pub(super) metadata: Map<String, Value>,
    pub(super) place: Place,
}

/// What has become of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// Nobody has told the thread of it yet.
    New,
    InThread,
    /// A guard has taken it back.
    Gone,
}

impl AwaitedAnswers {
    pub(super) fn push(&mut self, message: Message, metadata: Map<String, Value>) {
        self.0.push(Awaited {
            message,
            metadata,
            place: Place::New,
        });
    }

    /// Takes over what the thread has made of them.
    pub(super) fn follow(&mut self, state: &ThreadState) {
        for answer in &mut self.0 {
            match state
                .messages()
                .iter()
                .rfind(|held| held.id.is_some() && held.id == answer.message.id)
            {
                Some(now) => (answer.message, answer.place) = (now.clone(), Place::InThread),
                None if answer.place == Place::InThread => answer.place = Place::Gone,
                None => {}
            }
        }
    }

    /// Those that guards are done with. One without a word waits for the next: it is taken back when the model says something.
    pub(super) fn settled(&mut self) -> Vec<Awaited> {
        let silent = self
            .0
            .iter()
            .rev()
            .take_while(|answer| answer.is_silent())
            .count();
        self.0.drain(..self.0.len() - silent).collect()
    }

    /// All there are.
    pub(super) fn rest(&mut self) -> Vec<Awaited> {
        std::mem::take(&mut self.0)
    }
}

impl Awaited {
    fn is_silent(&self) -> bool {
        self.place != Place::Gone
            && self.message.call_ids().next().is_none()
            && self.message.content.text().trim().is_empty()
    }
}
