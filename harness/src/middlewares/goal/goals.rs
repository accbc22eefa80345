//! Reads, sets and clears goals, for the gateway and the embedded client.

use serde::{Deserialize, Serialize};

use super::state::{GOAL, Goal, MAX_OBJECTIVE_CHARS};
use crate::clock::Clock;
use crate::ids::{IdSource, ThreadId};
use crate::runtime::checkpoint::{
    CheckpointError, CheckpointSource, Checkpointer, ExternalUpdate, PutError,
};
use crate::runtime::runs::ThreadStatus;
use crate::runtime::threads::{ThreadError, ThreadIndex};
use crate::state::{StateError, StateUpdate};

/// Maximum number of attempts to write a goal when the thread is changed concurrently.
const MAX_ATTEMPTS: u32 = 8;

/// Goal of a thread as `/threads/{t}/goal` returns it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GoalView {
    /// The goal, if there is one.
    pub goal: Option<Goal>,
}

/// Problem of an objective.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ObjectiveIssue {
    /// The objective is empty.
    #[error("String should have at least 1 character")]
    Blank,
    /// The objective is too long.
    #[error("String should have at most {MAX_OBJECTIVE_CHARS} characters")]
    TooLong,
}

impl ObjectiveIssue {
    /// Validates an objective without surrounding whitespace; `None` if it is valid.
    pub fn of(objective: &str) -> Option<Self> {
        match objective.chars().take(MAX_OBJECTIVE_CHARS + 1).count() {
            0 => Some(Self::Blank),
            count if count > MAX_OBJECTIVE_CHARS => Some(Self::TooLong),
            _ => None,
        }
    }
}

/// Error of a goal operation. The goal is unchanged.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GoalError {
    /// The objective is invalid.
    #[error("invalid objective: {0}")]
    Objective(#[from] ObjectiveIssue),
    /// A run is in flight, and a goal cannot be changed during a run.
    #[error("thread {0} has a run in flight")]
    Busy(ThreadId),
    /// The thread was changed concurrently in every attempt.
    #[error("thread {0} is being changed concurrently, try again")]
    Contended(ThreadId),
    /// The thread cannot be found or created.
    #[error(transparent)]
    Thread(#[from] ThreadError),
    /// The thread's state cannot be read.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// The thread's state does not accept a goal.
    #[error(transparent)]
    State(#[from] StateError),
    /// The thread's state cannot be written.
    #[error(transparent)]
    Put(PutError),
}

/// Goal operations on a user's threads.
#[derive(Debug, Clone, Copy)]
pub struct Goals<'a> {
    /// Id of the user.
    pub user: &'a str,
    /// Threads and their owners.
    pub threads: &'a dyn ThreadIndex,
    /// States of the threads.
    pub checkpoints: &'a dyn Checkpointer,
    /// Source of the time.
    pub clock: &'a dyn Clock,
    /// Source of message and checkpoint ids.
    pub ids: &'a dyn IdSource,
}

impl Goals<'_> {
    /// Returns the goal of a thread; none if the thread does not exist.
    ///
    /// # Errors
    /// Returns an error if a store fails.
    pub async fn get(&self, thread: &ThreadId) -> Result<GoalView, GoalError> {
        let goal = if self.threads.status(self.user, thread).await?.is_some() {
            self.current(thread).await?
        } else {
            None
        };
        Ok(GoalView { goal })
    }

    /// Returns the goal in the newest state of a thread.
    async fn current(&self, thread: &ThreadId) -> Result<Option<Goal>, GoalError> {
        Ok(self
            .checkpoints
            .get(thread, None)
            .await?
            .and_then(|snapshot| Goal::of(&snapshot.state)))
    }

    /// Sets the goal of a thread and creates the thread if it does not exist. The agent is
    /// continued at most `most` times.
    ///
    /// # Errors
    /// Returns [`GoalError::Objective`], [`GoalError::Busy`], [`ThreadError::Taken`], or an error
    /// of a store.
    pub async fn set(
        &self,
        thread: &ThreadId,
        objective: &str,
        most: u64,
    ) -> Result<GoalView, GoalError> {
        let objective = objective.trim();
        if let Some(issue) = ObjectiveIssue::of(objective) {
            return Err(issue.into());
        }
        let status = self
            .threads
            .find_or_make(self.user, thread, self.clock.now())
            .await?;
        let goal = Goal::new(objective, most, self.clock.now());
        self.write(thread, status, Some(&goal)).await?;
        Ok(GoalView { goal: Some(goal) })
    }

    /// Clears the goal of a thread, if it has one.
    ///
    /// # Errors
    /// Returns [`GoalError::Busy`], or an error of a store.
    pub async fn clear(&self, thread: &ThreadId) -> Result<GoalView, GoalError> {
        if let Some(status) = self.threads.status(self.user, thread).await?
            && self.current(thread).await?.is_some()
        {
            self.write(thread, status, None).await?;
        }
        Ok(GoalView { goal: None })
    }

    async fn write(
        &self,
        thread: &ThreadId,
        status: ThreadStatus,
        goal: Option<&Goal>,
    ) -> Result<(), GoalError> {
        if status == ThreadStatus::Busy {
            return Err(GoalError::Busy(thread.clone()));
        }
        let goal = serde_json::to_value(goal).unwrap_or_default();
        for _ in 0..MAX_ATTEMPTS {
            let newest = self.checkpoints.get(thread, None).await?;
            let log_tail = match &newest {
                Some(newest) => newest.log_tail,
                None => self.checkpoints.log_tail(thread).await?,
            };
            let mut after = newest
                .as_ref()
                .map(|newest| newest.state.clone())
                .unwrap_or_default();
            after.apply(StateUpdate::channel(GOAL, goal.clone()), self.ids)?;
            let change = ExternalUpdate {
                thread_id: thread,
                base: newest.as_ref(),
                newest: newest.as_ref(),
                log_tail,
                after: &mut after,
                source: CheckpointSource::Update,
                next: newest
                    .as_ref()
                    .map(|newest| newest.meta.next.clone())
                    .unwrap_or_default(),
                machine: newest
                    .as_ref()
                    .and_then(|newest| newest.meta.machine.clone()),
            };
            match self
                .checkpoints
                .put_outside_run(change.planned(self.ids, self.clock.now()))
                .await
            {
                Ok(()) => return Ok(()),
                Err(PutError::Moved(_)) => {
                    tracing::debug!(thread_id = %thread, "thread was changed concurrently, retrying to write its goal")
                }
                Err(PutError::Busy { thread_id, .. }) => return Err(GoalError::Busy(thread_id)),
                Err(error) => return Err(GoalError::Put(error)),
            }
        }
        Err(GoalError::Contended(thread.clone()))
    }
}
