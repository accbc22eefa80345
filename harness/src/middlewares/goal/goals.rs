//! Goals as users set, read and clear them: the same for the gateway and the embedded client.

use serde::{Deserialize, Serialize};

use super::state::{GOAL, Goal, MAX_OBJECTIVE_CHARS};
use crate::clock::Clock;
use crate::ids::{IdSource, ThreadId};
use crate::runtime::checkpoint::{
    CheckpointError, CheckpointSource, Checkpointer, OutsideChange, PutError,
};
use crate::runtime::runs::ThreadStatus;
use crate::runtime::threads::{ThreadError, ThreadIndex};
use crate::state::{StateError, StateUpdate};

/// How often a change is planned anew because others changed the thread meanwhile.
const MOST_TRIES: u32 = 8;

/// The goal of a thread, as `/threads/{t}/goal` shows it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GoalView {
    /// The goal, if there is one.
    pub goal: Option<Goal>,
}

/// What is wrong with an objective.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ObjectiveIssue {
    /// It says nothing.
    #[error("String should have at least 1 character")]
    Blank,
    /// It is too long.
    #[error("String should have at most {MAX_OBJECTIVE_CHARS} characters")]
    TooLong,
}

impl ObjectiveIssue {
    /// What is wrong with this objective, which has no space around it.
    pub fn of(objective: &str) -> Option<Self> {
        match objective.chars().take(MAX_OBJECTIVE_CHARS + 1).count() {
            0 => Some(Self::Blank),
            count if count > MAX_OBJECTIVE_CHARS => Some(Self::TooLong),
            _ => None,
        }
    }
}

/// Why a goal was not read or changed. It is as it was.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GoalError {
    /// The objective is beyond limits.
    #[error("the objective cannot be kept: {0}")]
    Objective(#[from] ObjectiveIssue),
    /// Goals do not change under a run.
    #[error("thread {0} has a run in flight")]
    Busy(ThreadId),
    /// Others change the thread all the time.
    #[error("thread {0} is being changed by others")]
    Contended(ThreadId),
    /// The thread cannot be found or made.
    #[error(transparent)]
    Thread(#[from] ThreadError),
    /// Its state cannot be read.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// Its state takes no goal.
    #[error(transparent)]
    State(#[from] StateError),
    /// Its state cannot be written.
    #[error(transparent)]
    Put(PutError),
}

/// The goals of a user's threads.
#[derive(Debug, Clone, Copy)]
pub struct Goals<'a> {
    /// Whose.
    pub user: &'a str,
    /// Who has which thread.
    pub threads: &'a dyn ThreadIndex,
    /// Their states.
    pub checkpoints: &'a dyn Checkpointer,
    /// Time.
    pub clock: &'a dyn Clock,
    /// Ids.
    pub ids: &'a dyn IdSource,
}

impl Goals<'_> {
    /// The goal of a thread. A thread that is not there has none.
    ///
    /// # Errors
    /// When a store fails.
    pub async fn get(&self, thread: &ThreadId) -> Result<GoalView, GoalError> {
        let goal = if self.threads.status(self.user, thread).await?.is_some() {
            self.kept(thread).await?
        } else {
            None
        };
        Ok(GoalView { goal })
    }

    /// The goal in the newest state of a thread.
    async fn kept(&self, thread: &ThreadId) -> Result<Option<Goal>, GoalError> {
        Ok(self
            .checkpoints
            .get(thread, None)
            .await?
            .and_then(|snapshot| Goal::of(&snapshot.state)))
    }

    /// Sets the goal of a thread, also before its first message, when there is no thread yet. The agent is sent on at most `most`
    /// times.
    ///
    /// # Errors
    /// [`GoalError::Objective`], [`GoalError::Busy`], [`ThreadError::Taken`], and when a store fails.
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

    /// Takes the goal of a thread away, if it has one.
    ///
    /// # Errors
    /// [`GoalError::Busy`], and when a store fails.
    pub async fn clear(&self, thread: &ThreadId) -> Result<GoalView, GoalError> {
        if let Some(status) = self.threads.status(self.user, thread).await?
            && self.kept(thread).await?.is_some()
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
        for _ in 0..MOST_TRIES {
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
            let change = OutsideChange {
                thread_id: thread,
                base: newest.as_ref(),
                newest: newest.as_ref(),
                log_tail,
                after,
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
                    tracing::debug!(thread_id = %thread, "the thread was changed meanwhile, planning the goal again")
                }
                Err(PutError::Busy { thread_id, .. }) => return Err(GoalError::Busy(thread_id)),
                Err(error) => return Err(GoalError::Put(error)),
            }
        }
        Err(GoalError::Contended(thread.clone()))
    }
}
