//! Buffers the writes of a run and commits them in the background, in order and one commit at a
//! time, so that token streaming does not wait for the store.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::Instant;

use super::commit_retry::{CommitFailure, RETRY, commit_before, commit_end};
use super::sent_commit::SentCommit;
use crate::agent::{CallProgress, PendingCallEntry};
use crate::checkpoint::CheckpointWrite;
use crate::definition::{RunCompletionData, RunRecord, RunStatus, StoreError};
use crate::ports::{CommitError, NewRunEvent, RunCommit, RunEnd, RuntimePorts};
use crate::termination::commit_until_stored;
use crate::user_memory::MemoryUpdate;
use deerflow_core::fail_points;

/// Time for which writes are buffered before they are committed. With it, a short run needs two
/// commits: admission and end.
const GATHER_INTERVAL: Duration = Duration::from_millis(25);

/// Timeout of a release.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(2);

/// Buffer of a run's writes.
#[derive(Debug)]
pub(super) struct CommitBuffer {
    ports: RuntimePorts,
    /// Not shared, except while the end is sent.
    pending: Arc<RunCommit>,
    /// Last commit that was sent.
    sent: SentCommit,
    /// Time at which the buffered writes are sent; `None` if there are none.
    flush_at: Option<Instant>,
    /// Callers that wait for buffered writes.
    waiters: Vec<oneshot::Sender<()>>,
    has_calls: bool,
}

impl CommitBuffer {
    pub(super) fn new(record: &RunRecord, ports: RuntimePorts) -> Self {
        let pending = RunCommit::new(
            record.run_id.clone(),
            record.thread_id.clone(),
            record.attempt,
            ports.clock.now(),
        );
        Self {
            ports,
            pending: Arc::new(pending),
            sent: SentCommit::default(),
            flush_at: None,
            waiters: Vec::new(),
            has_calls: false,
        }
    }

    pub(super) fn advance(&mut self, status: RunStatus) {
        self.pending().advance = Some(status);
        self.schedule_flush();
    }

    pub(super) fn events(&mut self, events: Vec<NewRunEvent>) {
        if !events.is_empty() {
            self.pending().events.extend(events);
            self.schedule_flush();
        }
    }

    /// Buffers a checkpoint, or replaces the buffered one with the same id.
    pub(super) fn checkpoint(&mut self, write: CheckpointWrite) {
        let checkpoints = &mut self.pending().checkpoints;
        match checkpoints
            .iter()
            .position(|buffered| buffered.meta.checkpoint_id == write.meta.checkpoint_id)
        {
            Some(at) => {
                let buffered = checkpoints.remove(at);
                checkpoints.insert(at, write.instead_of(buffered));
            }
            None => checkpoints.push(write),
        }
        self.schedule_flush();
    }

    /// Limits the buffer to one checkpoint while a commit is in flight or unconfirmed: waits for
    /// that commit if there are more, at most for the duration of an outage. Cancellation safe.
    pub(super) async fn apply_backpressure(&mut self) -> Result<(), CommitError> {
        if self.pending.checkpoints.len() > 1 {
            self.await_confirmed().await
        } else {
            Ok(())
        }
    }

    /// Sets the totals so far. They are written with the next commit.
    pub(super) fn set_usage(&mut self, so_far: RunCompletionData) {
        self.pending().so_far = Some(Box::new(so_far));
    }

    /// Buffers the pending update of a user memory.
    pub(super) fn update_memory(&mut self, update: Box<MemoryUpdate>) {
        self.pending().memory_update = Some(update);
        self.schedule_flush();
    }

    /// Buffers the progress of a call. A caller waits for it, so it is flushed at once.
    pub(super) fn call(&mut self, PendingCallEntry { entry, written }: PendingCallEntry) {
        self.pending().calls.push(entry);
        self.waiters.push(written);
        self.has_calls = true;
        self.flush_at = Some(Instant::now());
    }

    /// Reports whether the last commit is not confirmed yet.
    pub(super) fn is_unconfirmed(&self) -> bool {
        self.sent.is_unconfirmed()
    }

    /// Reports whether this attempt has recorded calls.
    pub(super) fn has_calls(&self) -> bool {
        self.has_calls
    }

    /// Waits until all buffered writes are durable. Cancellation safe.
    pub(super) async fn flush(&mut self) -> Result<(), CommitError> {
        self.await_confirmed().await?;
        self.send();
        self.await_confirmed().await
    }

    /// Waits until all sent commits are durable.
    async fn await_confirmed(&mut self) -> Result<(), CommitError> {
        loop {
            self.sent.response().await?;
            match &self.sent {
                SentCommit::Confirmed => return Ok(()),
                SentCommit::Lost(why) => return Err(why.clone().into()),
                SentCommit::Unconfirmed(_) | SentCommit::InFlight(_) => self.resend().await,
            }
        }
    }

    /// Flushes the buffer if its flush time has come. Needed while an agent emits events without a
    /// pause, because [`CommitBuffer::drive`] is not polled then.
    pub(super) fn flush_if_due(&mut self, now: Instant) {
        if self.sent.is_confirmed() && self.flush_at.is_some_and(|flush_at| now >= flush_at) {
            self.send();
        }
    }

    /// Drives commits in the background, polled concurrently with the agent. Returns after each
    /// commit and has to be called again.
    pub(super) async fn drive(&mut self) -> Result<(), CommitError> {
        match (&self.sent, self.flush_at) {
            (SentCommit::InFlight(_), _) => return self.sent.response().await,
            (SentCommit::Unconfirmed(_), _) => self.resend().await,
            (SentCommit::Lost(why), _) => return Err(why.clone().into()),
            (SentCommit::Confirmed, Some(flush_at)) => {
                tokio::time::sleep_until(flush_at).await;
                self.send();
            }
            (SentCommit::Confirmed, None) => std::future::pending().await,
        }
        Ok(())
    }

    /// Waits until the result of every sent commit is known, before the run ends.
    pub(super) async fn confirm_steps(&mut self) -> Result<(), CommitFailure> {
        match self.sent.response().await {
            Ok(()) | Err(CommitError::Store(_)) => {}
            Err(refused) => return Err(CommitFailure::Refused(refused)),
        }
        match std::mem::take(&mut self.sent) {
            SentCommit::Unconfirmed(mut unconfirmed) => {
                let advance = unconfirmed.commit.advance;
                let stored = commit_end(&mut unconfirmed.commit, &self.ports).await;
                if stored.is_err() {
                    self.pending().advance = self.pending.advance.or(advance);
                }
                stored
            }
            SentCommit::Lost(why) => Err(CommitFailure::Steps(why)),
            SentCommit::Confirmed | SentCommit::InFlight(_) => Ok(()),
        }
    }

    /// Commits the remaining writes and the end. The update of a memory is omitted if the store
    /// rejects the commit with it: the next run of the thread registers another one.
    pub(super) async fn finish(&mut self, end: RunEnd) -> Result<(), CommitFailure> {
        self.next_batch();
        self.pending().calls.clear();
        self.pending().end = Some(end);
        let ended = commit_end(&mut self.pending, &self.ports).await;
        let Err(CommitFailure::Steps(error)) = &ended else {
            return ended;
        };
        if self.pending().memory_update.take().is_none() {
            return ended;
        }
        tracing::warn!(
            run_id = %self.pending.run_id, %error,
            "cannot store the end of the run with its memory update, storing it without the update"
        );
        self.next_batch();
        commit_end(&mut self.pending, &self.ports).await
    }

    /// Commits the end of a run whose steps the store rejects, with the input instead of the steps,
    /// or without it if the store rejects that too. Retried until shutdown.
    pub(super) async fn finish_without_steps(
        &mut self,
        end: RunEnd,
        (checkpoints, events): (Vec<CheckpointWrite>, Vec<NewRunEvent>),
    ) -> Result<(), CommitFailure> {
        self.next_batch();
        self.pending().calls.clear();
        let bare = RunCommit {
            events: Vec::new(),
            checkpoints: Vec::new(),
            memory_update: None,
            end: Some(end),
            ..RunCommit::clone(&self.pending)
        };
        let mut with_input = Arc::new(RunCommit {
            events,
            checkpoints,
            ..bare.clone()
        });
        match commit_end(&mut with_input, &self.ports).await {
            // The end is not published before it is stored.
            Err(CommitFailure::Steps(_)) => commit_until_stored(&Arc::new(bare), &self.ports)
                .await
                .map_err(CommitFailure::Refused),
            ended => ended,
        }
    }

    /// Commits the remaining writes and releases the run, so that another process resumes it.
    /// Limited by [`RELEASE_TIMEOUT`]: the runs of a process that cannot release them are taken
    /// over after its lease expires.
    pub(super) async fn release(&mut self) -> Result<(), CommitError> {
        let deadline = Instant::now() + RELEASE_TIMEOUT;
        let awaited = tokio::time::timeout_at(deadline, self.sent.response()).await;
        awaited.unwrap_or_else(|_| {
            Err(StoreError::Unavailable(
                "the store does not respond to the commit in flight".to_owned(),
            )
            .into())
        })?;
        if let SentCommit::Unconfirmed(unconfirmed) = &self.sent {
            commit_before(unconfirmed.commit.clone(), deadline, &self.ports).await?;
            self.sent = SentCommit::Confirmed;
        }
        self.next_batch();
        // These calls were not confirmed, so they did not start.
        let pending = self.pending();
        pending
            .calls
            .retain(|call| call.progress != CallProgress::Started);
        let release = Arc::new(pending.clone().releasing());
        commit_before(release, deadline, &self.ports).await
    }

    /// Returns the buffered writes for a change.
    fn pending(&mut self) -> &mut RunCommit {
        Arc::make_mut(&mut self.pending)
    }

    fn schedule_flush(&mut self) {
        self.flush_at
            .get_or_insert_with(|| Instant::now() + GATHER_INTERVAL);
    }

    fn send(&mut self) {
        self.flush_at = None;
        self.next_batch();
        let at = self.ports.clock.now();
        let pending = self.pending();
        let commit = RunCommit {
            advance: pending.advance.take(),
            events: std::mem::take(&mut pending.events),
            checkpoints: std::mem::take(&mut pending.checkpoints),
            calls: std::mem::take(&mut pending.calls),
            so_far: pending.so_far.take(),
            memory_update: pending.memory_update.take(),
            at,
            ..pending.clone()
        };
        fail_points::pass("step.gathered");
        let waiters = std::mem::take(&mut self.waiters);
        self.sent = SentCommit::send(Arc::new(commit), waiters, &self.ports);
    }

    /// Resends the unconfirmed commit unchanged, after a pause. Cancellation safe during the pause.
    async fn resend(&mut self) {
        tokio::time::sleep(RETRY).await;
        self.sent = std::mem::take(&mut self.sent).resent(&self.ports);
    }

    /// Assigns the next number to the buffered commit. The store detects repeated commits by it.
    fn next_batch(&mut self) {
        self.pending().batch += 1;
    }
}
