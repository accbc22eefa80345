//! The run's writes, in order and off the token path: what has gathered goes out as one commit, one commit at a time.

use std::time::Duration;

use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::super::parts::RuntimeParts;
use super::super::record::{RunCompletionData, RunRecord};
use super::super::recovery::{END_LATER, until_stored};
use super::super::status::RunStatus;
use super::super::store::{CallProgress, CommitError, NewRunEvent, RunCommit, RunEnd, StoreError};
use crate::runtime::agent::CallLine;
use crate::runtime::checkpoint::CheckpointWrite;
use crate::runtime::fail_points;
use crate::runtime::tasks::{TaskKind, TaskPanicked};

/// How long writes gather before they go out by themselves: a short run then needs two commits, accepted and ended.
const LINGER: Duration = Duration::from_millis(25);
/// How long the end of a run is tried again while the store answers with an error.
const END_PATIENCE: Duration = Duration::from_secs(60);
/// How long giving a run back is tried.
const GIVE_BACK_PATIENCE: Duration = Duration::from_secs(2);
/// The wait between two such tries.
const RETRY: Duration = Duration::from_millis(500);
/// How long a run goes on while the store is away. What it reaches meanwhile gathers here.
const OUTAGE_PATIENCE: Duration = Duration::from_secs(60);

/// A commit under way; one that failed comes back with what it was to write.
type Commit = JoinHandle<Result<Result<(), (CommitError, RunCommit)>, TaskPanicked>>;

/// Why a run could not be stored to its end.
#[derive(Debug)]
pub(super) enum Unstored {
    /// The store does not take its steps although it answers: it has to end without them, and must not end well.
    Steps(StoreError),
    /// It is not ours to end, or the process ends first.
    Refused(CommitError),
}

/// Gathers and commits.
#[derive(Debug)]
pub(super) struct Journal {
    parts: RuntimeParts,
    gathered: RunCommit,
    /// A commit that the store did not confirm. It may have been written all the same, so it is sent again as it was, and
    /// before anything else: what comes later builds on it.
    unconfirmed: Option<RunCommit>,
    /// Why steps are gone that were sent.
    dropped: Option<StoreError>,
    /// Since when no commit is confirmed.
    failing_since: Option<Instant>,
    due: Option<Instant>,
    in_flight: Option<Commit>,
    /// Who waits for what has gathered, and who for the commit under way.
    waiting: Vec<oneshot::Sender<()>>,
    waiting_in_flight: Vec<oneshot::Sender<()>>,
    has_calls: bool,
}

impl Journal {
    pub(super) fn new(record: &RunRecord, parts: RuntimeParts) -> Self {
        let gathered = RunCommit::new(
            record.run_id.clone(),
            record.thread_id.clone(),
            record.attempt,
            parts.clock.now(),
        );
        let (waiting, waiting_in_flight) = (Vec::new(), Vec::new());
        Self {
            parts,
            gathered,
            unconfirmed: None,
            dropped: None,
            failing_since: None,
            due: None,
            in_flight: None,
            waiting,
            waiting_in_flight,
            has_calls: false,
        }
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

    /// Takes a checkpoint.
    pub(super) fn checkpoint(&mut self, write: CheckpointWrite) {
        match self
            .gathered
            .checkpoints
            .iter()
            .position(|held| held.meta.checkpoint_id == write.meta.checkpoint_id)
        {
            Some(at) => {
                let held = self.gathered.checkpoints.remove(at);
                self.gathered.checkpoints.insert(at, write.instead_of(held));
            }
            None => self.gathered.checkpoints.push(write),
        }
        self.set_due();
    }

    /// The writer may be one step behind, no more: with more than one checkpoint behind a commit that is under way or not confirmed,
    /// this waits for that commit, as long as the store may be away. Safe to drop.
    pub(super) async fn keeps_up(&mut self) -> Result<(), CommitError> {
        if self.gathered.checkpoints.len() > 1 {
            self.confirmed().await
        } else {
            Ok(())
        }
    }

    /// Takes what the run adds up to so far; it is written with what comes next.
    pub(super) fn adds_up_to(&mut self, so_far: RunCompletionData) {
        self.gathered.so_far = Some(Box::new(so_far));
    }

    /// Takes what became of a call. Somebody waits for it, so it is due now.
    pub(super) fn call(&mut self, CallLine { entry, written }: CallLine) {
        self.gathered.calls.push(entry);
        self.waiting.push(written);
        self.has_calls = true;
        self.due = Some(Instant::now());
    }

    /// Whether the store has not said yes to what was last sent.
    pub(super) fn is_unconfirmed(&self) -> bool {
        self.unconfirmed.is_some() || self.in_flight.is_some()
    }

    /// Whether this attempt has written calls down.
    pub(super) fn has_calls(&self) -> bool {
        self.has_calls
    }

    /// Waits until all that was handed over is durable. Safe to drop.
    pub(super) async fn settled(&mut self) -> Result<(), CommitError> {
        self.confirmed().await?;
        self.send();
        self.confirmed().await
    }

    /// Waits until all that was sent is durable.
    async fn confirmed(&mut self) -> Result<(), CommitError> {
        self.settle().await?;
        while self.unconfirmed.is_some() {
            self.send_again().await;
            self.settle().await?;
        }
        Ok(())
    }

    /// Sends what is due, for an agent that never pauses long enough for [`Journal::tick`].
    pub(super) fn poke(&mut self, now: Instant) {
        if self.in_flight.is_none()
            && self.unconfirmed.is_none()
            && self.due.is_some_and(|due| now >= due)
        {
            self.send();
        }
    }

    /// Works in the background: to be polled beside the agent. Comes back when a commit has ended, so poll it again.
    pub(super) async fn tick(&mut self) -> Result<(), CommitError> {
        if self.in_flight.is_some() {
            return self.settle().await;
        }
        if self.unconfirmed.is_some() {
            self.send_again().await;
            return Ok(());
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

    /// Waits until no step that was sent is in doubt, for the run is about to end. See [`Unstored`].
    pub(super) async fn confirm_steps(&mut self) -> Result<(), Unstored> {
        match self.settle().await {
            Ok(()) | Err(CommitError::Store(_)) => {}
            Err(refused) => return Err(Unstored::Refused(refused)),
        }
        if let Some(why) = &self.dropped {
            return Err(Unstored::Steps(why.clone()));
        }
        let Some(unconfirmed) = self.unconfirmed.take() else {
            return Ok(());
        };
        let advance = unconfirmed.advance;
        let stored = self.outlast(unconfirmed).await;
        if stored.is_err() {
            self.gathered.advance = self.gathered.advance.or(advance);
        }
        stored
    }

    /// Writes everything that is left, and the end. See [`Unstored`].
    pub(super) async fn finish(&mut self, end: RunEnd) -> Result<(), Unstored> {
        self.number();
        self.gathered.calls.clear();
        self.gathered.end = Some(end);
        self.outlast(self.gathered.clone()).await
    }

    /// Writes the end of a run whose steps the store does not take, with its input in their place, or without if it does not take
    /// that. Tried for as long as the process lives.
    pub(super) async fn finish_without_steps(
        &mut self,
        end: RunEnd,
        (checkpoints, events): (Vec<CheckpointWrite>, Vec<NewRunEvent>),
    ) -> Result<(), Unstored> {
        self.number();
        self.gathered.calls.clear();
        let bare = RunCommit {
            events: Vec::new(),
            checkpoints: Vec::new(),
            end: Some(end),
            ..self.gathered.clone()
        };
        match self
            .outlast(RunCommit {
                events,
                checkpoints,
                ..bare.clone()
            })
            .await
        {
            // Nobody is told of an end that is not stored.
            Err(Unstored::Steps(_)) => until_stored(&bare, &self.parts)
                .await
                .map_err(Unstored::Refused),
            ended => ended,
        }
    }

    /// Writes everything that is left, and gives the run back for another process to go on with. For a short time only: a
    /// process that cannot do it is found dead soon.
    pub(super) async fn give_back(&mut self) -> Result<(), CommitError> {
        let deadline = Instant::now() + GIVE_BACK_PATIENCE;
        let settled = tokio::time::timeout_at(deadline, self.settle()).await;
        settled.unwrap_or_else(|_| {
            Err(StoreError::Unavailable("the commit under way is not answered".to_owned()).into())
        })?;
        if let Some(unconfirmed) = self.unconfirmed.clone() {
            self.persist(unconfirmed, deadline).await?;
            self.unconfirmed = None;
        }
        self.number();
        // Their effects did not begin, for nobody has answered.
        self.gathered
            .calls
            .retain(|call| call.progress != CallProgress::Started);
        self.persist(self.gathered.clone().giving_back(), deadline)
            .await
    }

    /// Commits, again and again until `deadline` while the store fails.
    async fn persist(&self, mut commit: RunCommit, deadline: Instant) -> Result<(), CommitError> {
        loop {
            commit.at = self.parts.clock.now();
            match self.parts.commit.commit(commit.clone()).await {
                Err(CommitError::Store(error)) if Instant::now() < deadline => {
                    tracing::warn!(%error, "the run is not stored yet");
                    tokio::time::sleep(RETRY).await;
                }
                ended => return ended,
            }
        }
    }

    /// Commits, again and again: while the store is away for as long as the process lives, and for a bounded time while it
    /// answers with an error.
    async fn outlast(&self, mut commit: RunCommit) -> Result<(), Unstored> {
        let (stop, began) = (self.parts.tasks.token(), Instant::now());
        let mut failing_since = None;
        loop {
            commit.at = self.parts.clock.now();
            let error = match self.parts.commit.commit(commit.clone()).await {
                Ok(()) => return Ok(()),
                Err(CommitError::Store(error)) => error,
                Err(refused) => return Err(Unstored::Refused(refused)),
            };
            tracing::warn!(%error, "the run is not stored yet");
            match &error {
                StoreError::Unavailable(_) => failing_since = None,
                _ if failing_since.get_or_insert_with(Instant::now).elapsed() < END_PATIENCE => {}
                _ => return Err(Unstored::Steps(error)),
            }
            if began.elapsed() < END_PATIENCE {
                tokio::time::sleep(RETRY).await;
            } else if stop
                .run_until_cancelled(tokio::time::sleep(END_LATER))
                .await
                .is_none()
            {
                return Err(Unstored::Refused(error.into()));
            }
        }
    }

    fn set_due(&mut self) {
        self.due.get_or_insert_with(|| Instant::now() + LINGER);
    }

    fn send(&mut self) {
        self.due = None;
        self.number();
        let commit = RunCommit {
            advance: self.gathered.advance.take(),
            events: std::mem::take(&mut self.gathered.events),
            checkpoints: std::mem::take(&mut self.gathered.checkpoints),
            calls: std::mem::take(&mut self.gathered.calls),
            so_far: self.gathered.so_far.take(),
            at: self.parts.clock.now(),
            ..self.gathered.clone()
        };
        self.waiting_in_flight = std::mem::take(&mut self.waiting);
        fail_points::pass("step.gathered");
        self.dispatch(commit);
    }

    fn dispatch(&mut self, commit: RunCommit) {
        let store = self.parts.commit.clone();
        let work = async move {
            store
                .commit(commit.clone())
                .await
                .map_err(|error| (error, commit))
        };
        self.in_flight = Some(
            self.parts
                .tasks
                .spawn(TaskKind::Finish, "run journal", work),
        );
    }

    /// Sends what was not confirmed once more, as it was, after a pause. Safe to drop while it pauses.
    async fn send_again(&mut self) {
        tokio::time::sleep(RETRY).await;
        if let Some(unconfirmed) = self.unconfirmed.take() {
            self.dispatch(unconfirmed);
        }
    }

    /// Gives what has gathered the next number, so that the store knows a commit it has seen.
    fn number(&mut self) {
        self.gathered.batch += 1;
    }

    /// Waits for the commit under way. Safe to drop and call again: the handle stays until it has answered. One that failed because
    /// the store is away is no error for a while; it is sent again.
    async fn settle(&mut self) -> Result<(), CommitError> {
        let Some(commit) = &mut self.in_flight else {
            return Ok(());
        };
        let ended = commit.await;
        self.in_flight = None;
        match ended {
            Ok(Ok(Ok(()))) => {
                fail_points::pass("step.stored");
                self.failing_since = None;
                // Who went away needs no answer.
                for written in std::mem::take(&mut self.waiting_in_flight) {
                    let _gone = written.send(());
                }
                Ok(())
            }
            Ok(Ok(Err((error, unwritten)))) => {
                self.unconfirmed = Some(unwritten);
                let since = *self.failing_since.get_or_insert_with(Instant::now);
                match error {
                    CommitError::Store(StoreError::Unavailable(reason))
                        if since.elapsed() < OUTAGE_PATIENCE =>
                    {
                        tracing::warn!(reason, "a step of the run is not stored yet");
                        Ok(())
                    }
                    error => Err(error),
                }
            }
            Ok(Err(panicked)) => {
                let why = StoreError::Failed(panicked.to_string());
                self.dropped = Some(why.clone());
                Err(why.into())
            }
            Err(gone) => Err(StoreError::Unavailable(gone.to_string()).into()),
        }
    }
}
