//! The run's writes, in order and off the token path: what has gathered goes out as one commit, one commit at a time.

use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::super::parts::RuntimeParts;
use super::super::record::RunRecord;
use super::super::status::RunStatus;
use super::super::store::{CommitError, NewRunEvent, RunCommit, RunEnd, StoreError};
use crate::runtime::checkpoint::CheckpointWrite;
use crate::runtime::tasks::{TaskKind, TaskPanicked};

/// How long writes gather before they go out by themselves: a short run then needs two commits, accepted and ended.
const LINGER: Duration = Duration::from_millis(25);
/// How long the end of a run is tried again while the store is away.
const END_PATIENCE: Duration = Duration::from_secs(60);
/// The wait between two such tries.
const END_RETRY: Duration = Duration::from_millis(500);

/// A commit under way; one that failed comes back with what it was to write.
type Commit = JoinHandle<Result<Result<(), (CommitError, RunCommit)>, TaskPanicked>>;

/// Gathers and commits.
#[derive(Debug)]
pub(super) struct Journal {
    parts: RuntimeParts,
    gathered: RunCommit,
    due: Option<Instant>,
    in_flight: Option<Commit>,
}

impl Journal {
    pub(super) fn new(record: &RunRecord, parts: RuntimeParts) -> Self {
        let gathered = RunCommit {
            run_id: record.run_id.clone(),
            thread_id: record.thread_id.clone(),
            attempt: record.attempt,
            advance: None,
            events: Vec::new(),
            checkpoints: Vec::new(),
            end: None,
            at: parts.clock.now(),
        };
        Self { parts, gathered, due: None, in_flight: None }
    }

    pub(super) fn advance(&mut self, status: RunStatus) {
        self.gathered.advance = Some(status);
        self.set_due();
    }

    pub(super) fn events(&mut self, events: Vec<NewRunEvent>) {
        if !events.is_empty() {
            self.gathered.events.extend(events);
            self.set_due();
        }
    }

    /// Takes a checkpoint. The writer may be one step behind, no more: with a commit under way and a checkpoint waiting
    /// already, this waits for the commit.
    pub(super) async fn checkpoint(&mut self, write: CheckpointWrite) -> Result<(), CommitError> {
        if !self.gathered.checkpoints.is_empty() && self.in_flight.is_some() {
            self.settle().await?;
        }
        self.gathered.checkpoints.push(write);
        self.set_due();
        Ok(())
    }

    /// Works in the background: to be polled beside the agent. Comes back when a commit has ended, so poll it again.
    pub(super) async fn tick(&mut self) -> Result<(), CommitError> {
        if self.in_flight.is_some() {
            return self.settle().await;
        }
        match self.due {
            Some(due) => {
                tokio::time::sleep_until(due).await;
                self.send();
                Ok(())
            }
            None => std::future::pending().await,
        }
    }

    /// Writes everything that is left, and the end, in one commit. While the store is away this is tried again for a bounded
    /// time; what cannot be written is dropped from the commit rather than the end.
    pub(super) async fn finish(&mut self, end: RunEnd) -> Result<(), CommitError> {
        if let Err(error @ (CommitError::AlreadyTerminal(_) | CommitError::OwnershipLost { .. } | CommitError::Gone(_))) =
            self.settle().await
        {
            return Err(error);
        }
        self.gathered.end = Some(end);
        let deadline = Instant::now() + END_PATIENCE;
        loop {
            self.gathered.at = self.parts.clock.now();
            match self.parts.commit.commit(self.gathered.clone()).await {
                Err(CommitError::Store(error)) if Instant::now() < deadline => {
                    tracing::warn!(%error, "the end of the run is not stored yet");
                    tokio::time::sleep(END_RETRY).await;
                }
                ended => return ended,
            }
        }
    }

    fn set_due(&mut self) {
        self.due.get_or_insert_with(|| Instant::now() + LINGER);
    }

    fn send(&mut self) {
        self.due = None;
        let commit = RunCommit {
            advance: self.gathered.advance.take(),
            events: std::mem::take(&mut self.gathered.events),
            checkpoints: std::mem::take(&mut self.gathered.checkpoints),
            end: None,
            at: self.parts.clock.now(),
            run_id: self.gathered.run_id.clone(),
            thread_id: self.gathered.thread_id.clone(),
            attempt: self.gathered.attempt,
        };
        let store = self.parts.commit.clone();
        let work = async move { store.commit(commit.clone()).await.map_err(|error| (error, commit)) };
        self.in_flight = Some(self.parts.tasks.spawn(TaskKind::Finish, "run journal", work));
    }

    /// Later checkpoints build on these, and the end on the step to `running`: the commit of the end tries them once more.
    fn take_back(&mut self, unwritten: RunCommit) {
        self.gathered.advance = self.gathered.advance.or(unwritten.advance);
        self.gathered.events.splice(0..0, unwritten.events);
        self.gathered.checkpoints.splice(0..0, unwritten.checkpoints);
    }

    /// Waits for the commit under way. Safe to drop and call again: the handle stays until it has answered.
    async fn settle(&mut self) -> Result<(), CommitError> {
        let Some(commit) = &mut self.in_flight else { return Ok(()) };
        let ended = commit.await;
        self.in_flight = None;
        match ended {
            Ok(Ok(Ok(()))) => Ok(()),
            Ok(Ok(Err((error, unwritten)))) => {
                self.take_back(unwritten);
                Err(error)
            }
            Ok(Err(panicked)) => Err(StoreError::Failed(panicked.to_string()).into()),
            Err(gone) => Err(StoreError::Unavailable(gone.to_string()).into()),
        }
    }
}
