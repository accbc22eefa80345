//! Runs in the database, their journal elsewhere: events are durable before the status that follows from them.

use std::collections::VecDeque;
use std::sync::Arc;

use async_trait::async_trait;
use harness::ids::{RunId, ThreadId};
use harness::runtime::actor_context::Owner;
use harness::runtime::runs::store::{
    CommitError, NewRunEvent, RunCommit, RunCommitStore, RunDeleteStore, RunEventStore,
    RunQueryStore, StoreError,
};
use parking_lot::Mutex;

use super::commit::Standing;
use super::{SqlRunStore, ThreadLeft};

/// Commits over two stores: a commit's events go to the journal first, then the rest to the database.
///
/// The two are not one transaction. A crash between them leaves events whose step is not recorded, and recovery writes that step
/// again; it never leaves a status whose events are missing. A commit from an attempt that no longer owns the run is refused
/// before anything is journaled, as far as that is known then. A numbered commit that this process journaled is not journaled
/// again when it comes again.
#[derive(Debug, Clone)]
pub struct SplitCommitStore {
    runs: SqlRunStore,
    journal: Arc<dyn RunEventStore>,
    half_done: Arc<Mutex<VecDeque<Numbered>>>,
}

/// A numbered commit: run, attempt, batch.
type Numbered = (RunId, u32, u64);

/// How many commits are remembered whose events are journaled and whose rest nobody saw written.
const MOST_HALF_DONE: usize = 4_096;

impl SplitCommitStore {
    /// Keeps runs in `runs` and their events in `journal`.
    pub fn new(runs: SqlRunStore, journal: Arc<dyn RunEventStore>) -> Self {
        Self {
            runs,
            journal,
            half_done: Arc::default(),
        }
    }

    /// Journals the events of a commit that is new; what comes again was journaled before.
    async fn journal(
        &self,
        commit: &RunCommit,
        events: Vec<NewRunEvent>,
    ) -> Result<(), CommitError> {
        match self.runs.standing(commit).await? {
            Standing::Refused(error) => return Err(error),
            Standing::Repeated => return Ok(()),
            Standing::New(_)
                if events.is_empty() || self.half_done.lock().contains(&numbered(commit)) =>
            {
                return Ok(());
            }
            Standing::New(_) => self.journal.append(events).await?,
        };
        if commit.batch > 0 {
            let mut half_done = self.half_done.lock();
            if half_done.len() == MOST_HALF_DONE {
                half_done.pop_front();
            }
            half_done.push_back(numbered(commit));
        }
        Ok(())
    }
}

fn numbered(commit: &RunCommit) -> Numbered {
    (commit.run_id.clone(), commit.attempt, commit.batch)
}

#[async_trait]
impl RunCommitStore for SplitCommitStore {
    async fn commit(&self, mut commit: RunCommit) -> Result<(), CommitError> {
        let events = std::mem::take(&mut commit.events);
        self.journal(&commit, events).await?;
        let (thread, sent) = (commit.thread_id.clone(), numbered(&commit));
        let left = self.runs.commit_told(commit).await?;
        self.half_done.lock().retain(|other| *other != sent);
        if left == ThreadLeft::Gone {
            self.journal.delete_thread(&thread).await?;
        }
        Ok(())
    }
}

#[async_trait]
impl RunDeleteStore for SplitCommitStore {
    async fn delete(&self, run: &RunId) -> Result<bool, StoreError> {
        // The journal first: once the row is gone, nobody knows what else there was to delete.
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
