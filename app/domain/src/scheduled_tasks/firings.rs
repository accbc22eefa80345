//! Fires tasks and follows their runs. The state of a task's run follows from the run that it
//! created, so a crash between two steps leaves no state behind that is not corrected later.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use deerflow_core::clock::Clock;
use deerflow_core::ids::IdSource;
use deerflow_runtime::runs::store::StoreError;

use super::record::{RunProgress, ScheduledTask, TaskRun, TaskRunStatus, TaskTrigger};
use super::store::TaskStore;
use super::transitions::{Begun, Firing};

/// Reason why a firing created no run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StartRefusal {
    /// The thread has an active run.
    #[error("{0}")]
    Busy(String),
    /// The run cannot be created, and a retry would not help.
    #[error("{0}")]
    Refused(String),
    /// A dependency was unavailable; a retry may succeed.
    #[error("{0}")]
    Unavailable(String),
}

/// Creates and reads the runs of tasks, as the owner of the task.
#[async_trait]
pub trait TaskRunner: Send + Sync + std::fmt::Debug {
    /// Creates the run with the ids in `run`. Succeeds if the run already exists.
    async fn start(&self, task: &ScheduledTask, run: &TaskRun) -> Result<(), StartRefusal>;
    /// Returns the state of the run.
    async fn progress(&self, run: &TaskRun) -> Result<RunProgress, StoreError>;
}

/// Reason why a manual trigger failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TriggerError {
    /// The task does not exist.
    #[error("the task does not exist")]
    NotFound,
    /// The task or its thread has an active run.
    #[error("the task or its thread has an active run")]
    Busy,
    /// The run was not created.
    #[error("{0}")]
    Failed(String),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Timeout of one start.
const START_TIMEOUT: Duration = Duration::from_secs(30);
/// Age at which an unfinished start is repeated. Longer than the timeout of a start.
const CLAIM_TIMEOUT: TimeDelta = TimeDelta::seconds(60);
/// Duration after which unfinished starts are no longer repeated, from the firing to the last attempt.
const RETRY_LIMIT: TimeDelta = TimeDelta::hours(1);
/// Maximum number of runs of one task that can be active. There is one; more are corrected too.
const ACTIVE_PER_TASK: usize = 8;

/// Fires tasks and follows their runs.
#[derive(Debug, Clone)]
pub struct TaskFirings {
    store: Arc<dyn TaskStore>,
    runner: Arc<dyn TaskRunner>,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn IdSource>,
}

impl TaskFirings {
    /// Creates the service over its ports.
    pub fn new(
        store: Arc<dyn TaskStore>,
        runner: Arc<dyn TaskRunner>,
        clock: Arc<dyn Clock>,
        ids: Arc<dyn IdSource>,
    ) -> Self {
        Self {
            store,
            runner,
            clock,
            ids,
        }
    }

    /// Returns the store.
    pub(super) fn store(&self) -> &Arc<dyn TaskStore> {
        &self.store
    }

    /// Returns the current time.
    pub(super) fn now(&self) -> DateTime<Utc> {
        self.clock.now()
    }

    /// Fires a task by the user's request.
    pub async fn trigger(&self, task: &ScheduledTask) -> Result<(), TriggerError> {
        self.follow_task(&task.task_id).await?;
        let run = self.new_run(task, self.clock.now(), TaskTrigger::Manual);
        match self.store.begin(run.clone(), None).await? {
            Begun::Queued => {}
            Begun::Busy => return Err(TriggerError::Busy),
            Begun::Gone => return Err(TriggerError::NotFound),
        }
        match self.start(task, &run).await {
            Ok(()) => Ok(()),
            Err(StartRefusal::Busy(_)) => Err(TriggerError::Busy),
            Err(StartRefusal::Unavailable(reason)) => {
                // The user may try again, so the start is not repeated later.
                self.end(&run, TaskRunStatus::Failed, &reason).await?;
                Err(TriggerError::Failed(reason))
            }
            Err(StartRefusal::Refused(reason)) => Err(TriggerError::Failed(reason)),
        }
    }

    /// Fires a task whose next time has come. Times that were missed meanwhile are skipped: the
    /// next one is in the future.
    pub(super) async fn fire(&self, task: &ScheduledTask) -> Result<(), StoreError> {
        let now = self.clock.now();
        let Some(fires_for) = task.next_run_at else {
            return Ok(());
        };
        self.follow_task(&task.task_id).await?;
        let firing = Firing {
            fires_for,
            next: task.schedule.next(&task.timezone, now.max(fires_for)),
        };
        let run = self.new_run(task, fires_for, TaskTrigger::Scheduled);
        match self.store.begin(run.clone(), Some(firing)).await? {
            Begun::Queued => match self.start(task, &run).await {
                Ok(()) => {
                    tracing::info!(task = %task.task_id, run = %run.run_id, %fires_for, "scheduled task started its run");
                }
                Err(error) => {
                    tracing::warn!(%error, task = %task.task_id, %fires_for, "scheduled task started no run");
                }
            },
            Begun::Busy => {
                tracing::info!(task = %task.task_id, %fires_for, "scheduled task skipped a firing during an active run");
            }
            Begun::Gone => {}
        }
        Ok(())
    }

    /// Updates the active runs of a task from the runs that they created.
    pub async fn follow_task(&self, task: &str) -> Result<(), StoreError> {
        for run in self.store.active(Some(task), ACTIVE_PER_TASK).await? {
            self.follow(&run).await?;
        }
        Ok(())
    }

    /// Updates a task's run from the run that it created, and repeats a start that was not
    /// finished.
    pub async fn follow(&self, run: &TaskRun) -> Result<(), StoreError> {
        let now = self.clock.now();
        if run.status == TaskRunStatus::Queued {
            return self.restart(run, now).await;
        }
        match self.runner.progress(run).await? {
            RunProgress::Unfinished => {}
            RunProgress::Ended { status, error, at } => {
                self.store
                    .advance(run, run.ended(status, error, at))
                    .await?;
            }
            RunProgress::Missing => {
                self.end(run, TaskRunStatus::Interrupted, "the run was deleted")
                    .await?;
            }
        }
        Ok(())
    }

    /// Repeats the start of a run whose last attempt is too long ago.
    async fn restart(&self, run: &TaskRun, now: DateTime<Utc>) -> Result<(), StoreError> {
        if now - run.claimed_at < CLAIM_TIMEOUT {
            return Ok(());
        }
        if run.claimed_at - run.created_at > RETRY_LIMIT {
            let reason = "the run could not be created, see the log of the server";
            return self.end(run, TaskRunStatus::Failed, reason).await;
        }
        let claimed = TaskRun {
            claimed_at: now,
            ..run.clone()
        };
        let task = self.store.get(&run.user_id, &run.task_id).await?;
        if let (true, Some(task)) = (self.store.advance(run, claimed.clone()).await?, task)
            && let Err(error) = self.start(&task, &claimed).await
        {
            tracing::warn!(%error, task = %task.task_id, "scheduled task started no run");
        }
        Ok(())
    }

    /// Creates the run of a queued row and stores the result, except of a refusal that may pass.
    async fn start(&self, task: &ScheduledTask, run: &TaskRun) -> Result<(), StartRefusal> {
        let timed_out = || {
            StartRefusal::Unavailable(format!(
                "the start timed out after {} s",
                START_TIMEOUT.as_secs()
            ))
        };
        let started = tokio::time::timeout(START_TIMEOUT, self.runner.start(task, run)).await;
        let started = started.unwrap_or_else(|_| Err(timed_out()));
        let stored = match &started {
            Ok(()) => self
                .store
                .advance(run, run.started(self.clock.now()))
                .await
                .map(|_| ()),
            Err(StartRefusal::Busy(reason)) => self.end(run, TaskRunStatus::Skipped, reason).await,
            Err(StartRefusal::Refused(reason)) => {
                self.end(run, TaskRunStatus::Failed, reason).await
            }
            Err(StartRefusal::Unavailable(_)) => Ok(()),
        };
        if let Err(error) = stored {
            // The row stays queued, and the start is repeated with the same run.
            tracing::warn!(%error, task = %task.task_id, "cannot store the start of a scheduled task");
        }
        started
    }

    async fn end(
        &self,
        run: &TaskRun,
        status: TaskRunStatus,
        reason: &str,
    ) -> Result<(), StoreError> {
        let ended = run.ended(status, Some(reason.to_owned()), self.clock.now());
        self.store.advance(run, ended).await.map(|_| ())
    }

    fn new_run(
        &self,
        task: &ScheduledTask,
        scheduled_for: DateTime<Utc>,
        trigger: TaskTrigger,
    ) -> TaskRun {
        let now = self.clock.now();
        TaskRun {
            task_run_id: format!("task-run-{}", self.ids.random().simple()),
            task_id: task.task_id.clone(),
            user_id: task.user_id.clone(),
            thread_id: task
                .thread_id
                .clone()
                .unwrap_or_else(|| self.ids.thread_id()),
            run_id: self.ids.run_id(),
            scheduled_for,
            trigger,
            status: TaskRunStatus::Queued,
            error: None,
            started_at: None,
            finished_at: None,
            claimed_at: now,
            created_at: now,
        }
    }
}
