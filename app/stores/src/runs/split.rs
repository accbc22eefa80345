//! Runs in the database, their journal elsewhere: events are durable before the status that follows from them.

use std::sync::Arc;

use async_trait::async_trait;
use harness::ids::{RunId, ThreadId};
use harness::runtime::actor_context::Owner;
use harness::runtime::runs::store::{CommitError, RunCommit, RunCommitStore, RunDeleteStore, RunEventStore, RunQueryStore, StoreError};

use super::{SqlRunStore, ThreadLeft};

/// Commits over two stores: a commit's events go to the journal first, then the rest to the database.
///
/// The two are not one transaction. A crash between them leaves events whose step is not recorded, and recovery writes that step
/// again; it never leaves a status whose events are missing. A commit from an attempt that no longer owns the run is refused
/// before anything is journaled, as far as that is known then.
#[derive(Debug, Clone)]
pub struct SplitCommitStore {
    runs: SqlRunStore,
    journal: Arc<dyn RunEventStore>,
}

impl SplitCommitStore {
    /// Keeps runs in `runs` and their events in `journal`.
    pub fn new(runs: SqlRunStore, journal: Arc<dyn RunEventStore>) -> Self {
        Self { runs, journal }
    }

    async fn refuse_early(&self, commit: &RunCommit) -> Result<(), CommitError> {
        let run = self.runs.get(&commit.run_id, &Owner::None).await?.ok_or_else(|| CommitError::Gone(commit.run_id.clone()))?;
        if run.status.is_terminal() {
            return Err(CommitError::AlreadyTerminal(commit.run_id.clone()));
        }
        if run.attempt != commit.attempt {
            return Err(CommitError::OwnershipLost { run_id: commit.run_id.clone(), attempt: commit.attempt });
        }
        Ok(())
    }
}

#[async_trait]
impl RunCommitStore for SplitCommitStore {
    async fn commit(&self, mut commit: RunCommit) -> Result<(), CommitError> {
        let events = std::mem::take(&mut commit.events);
        if !events.is_empty() {
            self.refuse_early(&commit).await?;
            self.journal.append(events).await?;
        }
        let thread = commit.thread_id.clone();
        if self.runs.commit_told(commit).await? == ThreadLeft::Gone {
            self.journal.delete_thread(&thread).await?;
        }
        Ok(())
    }
}

#[async_trait]
impl RunDeleteStore for SplitCommitStore {
    async fn delete(&self, run: &RunId) -> Result<bool, StoreError> {
        let thread = self.runs.get(run, &Owner::None).await?.map(|run| run.thread_id);
        let deleted = self.runs.delete(run).await?;
        if let (true, Some(thread)) = (deleted, thread) {
            self.journal.delete_run(&thread, run).await?;
        }
        Ok(deleted)
    }

    async fn delete_thread(&self, thread: &ThreadId) -> Result<(), StoreError> {
        self.runs.delete_thread(thread).await?;
        self.journal.delete_thread(thread).await
    }
}
