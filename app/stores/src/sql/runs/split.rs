//! Runs in the database with their journal in another store: events are durable before the status
//! that depends on them.

use std::collections::VecDeque;
use std::sync::Arc;

use async_trait::async_trait;
use deerflow_core::actor_context::Owner;
use deerflow_core::ids::{RunId, ThreadId};
use deerflow_runtime::runs::store::{
    CommitError, NewRunEvent, RunCommit, RunCommitStore, RunDeleteStore, RunEventStore,
    RunQueryStore, StoreError,
};
use parking_lot::Mutex;

use super::SqlRunStore;
use super::commit_guard::CommitCheck;
use super::commit_outcome::ThreadOutcome;

/// Commits over two stores: a commit's events are written to the journal first, then its other
/// parts to the database.
///
/// The two writes are not one transaction. After a crash between them the journal has events of a
/// step that the database does not record, and recovery writes that step again; a status is never
/// stored without its events. If an attempt is already known not to own the run, its commit is
/// refused before its events are journaled. When a numbered commit is repeated, its events are not
/// journaled again by the same process.
#[derive(Debug, Clone)]
pub struct SplitCommitStore {
    runs: SqlRunStore,
    journal: Arc<dyn RunEventStore>,
    journaled: Arc<Mutex<VecDeque<CommitNumber>>>,
}

/// Number of a commit: run, attempt, batch.
type CommitNumber = (RunId, u32, u64);

/// Maximum number of remembered commits with journaled events and an unconfirmed write to the
/// database.
const MAX_JOURNALED: usize = 4_096;

impl SplitCommitStore {
    /// Creates a store with runs in `runs` and their events in `journal`.
    pub fn new(runs: SqlRunStore, journal: Arc<dyn RunEventStore>) -> Self {
        Self {
            runs,
            journal,
            journaled: Arc::default(),
        }
    }

    /// Journals the events of a new commit; those of a repeated one are already there.
    async fn journal(
        &self,
        commit: &RunCommit,
        events: Vec<NewRunEvent>,
    ) -> Result<(), CommitError> {
        match self.runs.check_commit(commit).await? {
            CommitCheck::Refused(error) => return Err(error),
            CommitCheck::Repeated => return Ok(()),
            CommitCheck::New(_)
                if events.is_empty() || self.journaled.lock().contains(&commit_number(commit)) =>
            {
                return Ok(());
            }
            CommitCheck::New(_) => self.journal.append(events).await?,
        };
        if commit.batch > 0 {
            let mut journaled = self.journaled.lock();
            if journaled.len() == MAX_JOURNALED {
                journaled.pop_front();
            }
            journaled.push_back(commit_number(commit));
        }
        Ok(())
    }
}

fn commit_number(commit: &RunCommit) -> CommitNumber {
    (commit.run_id.clone(), commit.attempt, commit.batch)
}

#[async_trait]
impl RunCommitStore for SplitCommitStore {
    async fn commit(&self, commit: Arc<RunCommit>) -> Result<(), CommitError> {
        let mut commit = Arc::unwrap_or_clone(commit);
        let events = std::mem::take(&mut commit.events);
        self.journal(&commit, events).await?;
        let (thread, sent) = (commit.thread_id.clone(), commit_number(&commit));
        let outcome = self.runs.commit_with_outcome(Arc::new(commit)).await?;
        self.journaled.lock().retain(|other| *other != sent);
        if outcome == ThreadOutcome::Deleted {
            self.journal.delete_thread(&thread).await?;
        }
        Ok(())
    }
}

#[async_trait]
impl RunDeleteStore for SplitCommitStore {
    async fn delete(&self, run: &RunId) -> Result<bool, StoreError> {
        // The journal first: without the run's row, the thread of its events would be unknown.
        if let Some(over) = self
            .runs
            .get(run, &Owner::None)
            .await?
            .filter(|run| run.status.is_terminal())
        {
            self.journal.delete_run(&over.thread_id, run).await?;
        }
        self.runs.delete(run).await
    }

    async fn delete_thread(&self, thread: &ThreadId) -> Result<(), StoreError> {
        self.runs.delete_thread(thread).await?;
        self.journal.delete_thread(thread).await
    }
}
