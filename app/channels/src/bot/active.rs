//! Answers in progress.

use std::collections::HashMap;

use harness::ids::{RunId, ThreadId};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::platform::Target;

/// Answer in progress.
#[derive(Debug, Clone)]
pub(crate) struct ActiveTurn {
    /// Inbox rows that it answers; the first one identifies it.
    pub(crate) rows: Vec<Uuid>,
    /// Conversation.
    pub(crate) conversation: String,
    /// Destination of the answer; it names the person who asked.
    pub(crate) target: Target,
    /// Owner of the run.
    pub(crate) user_id: String,
    /// Thread of the run.
    pub(crate) thread_id: ThreadId,
    /// Run.
    pub(crate) run_id: RunId,
}

impl ActiveTurn {
    /// Returns the id of the first inbox row.
    pub(crate) fn id(&self) -> Uuid {
        self.rows.first().copied().unwrap_or_default()
    }
}

/// Phase of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Its files are downloaded; the run does not exist. A stop prevents it.
    Preparing,
    /// Its run is created, or exists since an earlier attempt.
    Creating,
    /// Its run exists.
    Running,
}

#[derive(Debug)]
struct Entry {
    turn: ActiveTurn,
    phase: Phase,
    /// Cancelled by a stop before the run.
    stop: CancellationToken,
}

/// Answers in progress by the id of the first inbox row.
#[derive(Debug, Default)]
pub(crate) struct ActiveTurns(Mutex<HashMap<Uuid, Entry>>);

/// Registration of an answer; its end removes it.
#[derive(Debug)]
pub(crate) struct Registered<'a> {
    turns: &'a ActiveTurns,
    id: Uuid,
    stop: CancellationToken,
}

impl ActiveTurns {
    /// Registers an answer in a phase.
    pub(crate) fn register(&self, turn: ActiveTurn, phase: Phase) -> Registered<'_> {
        let (id, stop) = (turn.id(), CancellationToken::new());
        let entry = Entry {
            turn,
            phase,
            stop: stop.clone(),
        };
        self.0.lock().insert(id, entry);
        Registered {
            turns: self,
            id,
            stop,
        }
    }

    /// Returns the answer of an inbox row.
    pub(crate) fn by_id(&self, id: Uuid) -> Option<ActiveTurn> {
        self.0.lock().get(&id).map(|entry| entry.turn.clone())
    }

    /// Returns the answer in progress in a conversation.
    pub(crate) fn in_conversation(&self, conversation: &str) -> Option<ActiveTurn> {
        self.0
            .lock()
            .values()
            .find(|entry| entry.turn.conversation == conversation)
            .map(|entry| entry.turn.clone())
    }

    /// Returns the phase of an answer, and prevents the run of one that is prepared.
    pub(crate) fn stop(&self, turn: &ActiveTurn) -> Phase {
        let entries = self.0.lock();
        let Some(entry) = entries.get(&turn.id()) else {
            return Phase::Running;
        };
        if entry.phase == Phase::Preparing {
            entry.stop.cancel();
        }
        entry.phase
    }
}

impl Registered<'_> {
    /// Returns the signal of a stop before the run.
    pub(crate) fn stopped(&self) -> &CancellationToken {
        &self.stop
    }

    /// Ends the preparation; `false` if the answer was stopped.
    pub(crate) fn begin_run(&self) -> bool {
        let mut entries = self.turns.0.lock();
        if self.stop.is_cancelled() {
            return false;
        }
        if let Some(entry) = entries.get_mut(&self.id) {
            entry.phase = Phase::Creating;
        }
        true
    }

    /// Records that the run exists in a thread.
    pub(crate) fn run_created(&self, thread: &ThreadId) {
        if let Some(entry) = self.turns.0.lock().get_mut(&self.id) {
            entry.turn.thread_id = thread.clone();
            entry.phase = Phase::Running;
        }
    }
}

impl Drop for Registered<'_> {
    fn drop(&mut self) {
        self.turns.0.lock().remove(&self.id);
    }
}
