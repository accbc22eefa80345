//! Answers in progress.

use std::collections::HashMap;

use harness::ids::{RunId, ThreadId};
use parking_lot::Mutex;
use uuid::Uuid;

/// Answer in progress.
#[derive(Debug, Clone)]
pub(crate) struct ActiveTurn {
    /// Conversation.
    pub(crate) conversation: String,
    /// Person who asked.
    pub(crate) person: String,
    /// Owner of the run.
    pub(crate) user_id: String,
    /// Thread of the run.
    pub(crate) thread_id: ThreadId,
    /// Run.
    pub(crate) run_id: RunId,
}

/// Answers in progress by the id of the first inbox row.
#[derive(Debug, Default)]
pub(crate) struct ActiveTurns(Mutex<HashMap<Uuid, ActiveTurn>>);

/// Registration of an answer; its end removes it.
#[derive(Debug)]
pub(crate) struct Registered<'a> {
    turns: &'a ActiveTurns,
    id: Uuid,
}

impl ActiveTurns {
    /// Registers an answer.
    pub(crate) fn register(&self, id: Uuid, turn: ActiveTurn) -> Registered<'_> {
        self.0.lock().insert(id, turn);
        Registered { turns: self, id }
    }

    /// Returns the answer of an inbox row.
    pub(crate) fn by_id(&self, id: Uuid) -> Option<ActiveTurn> {
        self.0.lock().get(&id).cloned()
    }

    /// Returns the answer in progress in a conversation.
    pub(crate) fn in_conversation(&self, conversation: &str) -> Option<ActiveTurn> {
        self.0
            .lock()
            .values()
            .find(|turn| turn.conversation == conversation)
            .cloned()
    }
}

impl Drop for Registered<'_> {
    fn drop(&mut self) {
        self.turns.0.lock().remove(&self.id);
    }
}
