//! Tests of firings, crashes and missed times with a manual clock.

use std::sync::Arc;

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use deerflow_core::clock::{Clock, ManualClock};
use deerflow_core::ids::SystemIds;
use parking_lot::Mutex;

use super::*;
use crate::scheduled_tasks::{
    ContextMode, InMemoryTaskStore, RunProgress, ScheduledTask, StartRefusal, TaskCreated, TaskRun,
    TaskRunStatus, TaskRunner, TaskSchedule, TaskStatus, TaskStore, TriggerError,
};

/// Records started runs; their progress and refusals are set by the test.
#[derive(Debug)]
struct Runs {
    started: Mutex<Vec<TaskRun>>,
    refusal: Mutex<Option<StartRefusal>>,
    progress: Mutex<RunProgress>,
}

#[async_trait]
impl TaskRunner for Runs {
    async fn start(&self, _task: &ScheduledTask, run: &TaskRun) -> Result<(), StartRefusal> {
        self.started.lock().push(run.clone());
        self.refusal.lock().clone().map_or(Ok(()), Err)
    }

    async fn progress(&self, _run: &TaskRun) -> Result<RunProgress, StoreError> {
        Ok(self.progress.lock().clone())
    }
}

struct Rig {
    store: Arc<InMemoryTaskStore>,
    runs: Arc<Runs>,
    clock: ManualClock,
}

fn moment(text: &str) -> DateTime<Utc> {
    DateTime::parse_from_rfc3339(text).unwrap().to_utc()
}

impl Rig {
    /// It is 08:10, and the task fires at 09:00, for a cron at every full hour.
    async fn new(schedule: TaskSchedule) -> Self {
        let now = moment("2026-11-21T08:10:00Z");
        let rig = Self {
            store: Arc::default(),
            runs: Arc::new(Runs {
                started: Mutex::default(),
                refusal: Mutex::default(),
                progress: Mutex::new(RunProgress::Unfinished),
            }),
            clock: ManualClock::starting_at(now),
        };
        let task = ScheduledTask {
            task_id: "t".to_owned(),
            user_id: "ann".to_owned(),
            context_mode: ContextMode::FreshThread,
            thread_id: None,
            title: String::new(),
            prompt: String::new(),
            schedule,
            timezone: "UTC".to_owned(),
            status: TaskStatus::Enabled,
            next_run_at: Some(moment("2026-11-21T09:00:00Z")),
            last_run_at: None,
            last_run_id: None,
            last_thread_id: None,
            last_error: None,
            run_count: 0,
            version: 1,
            created_at: now,
            updated_at: now,
        };
        assert_eq!(rig.store.create(task, 9).await, Ok(TaskCreated::New));
        rig
    }

    async fn hourly() -> Self {
        Self::new(TaskSchedule::Cron("0 * * * *".to_owned())).await
    }

    async fn once() -> Self {
        Self::new(TaskSchedule::Once(moment("2026-11-21T09:00:00Z"))).await
    }

    fn firings(&self) -> TaskFirings {
        TaskFirings::new(
            self.store.clone(),
            self.runs.clone(),
            Arc::new(self.clock.clone()),
            Arc::new(SystemIds::default()),
        )
    }

    /// Polls, and returns the number of starts so far.
    async fn poll(&self) -> usize {
        let scheduler = TaskScheduler::new(self.firings(), true, Duration::from_secs(1));
        scheduler.poll().await.unwrap();
        self.runs.started.lock().len()
    }

    async fn task(&self) -> ScheduledTask {
        self.store.get("ann", "t").await.unwrap().unwrap()
    }

    async fn trigger(&self) -> Result<(), TriggerError> {
        self.firings().trigger(&self.task().await).await
    }

    /// Statuses of the runs, newest first.
    async fn statuses(&self) -> Vec<TaskRunStatus> {
        let runs = self.store.runs("t", 9, 0).await.unwrap();
        runs.into_iter().map(|run| run.status).collect()
    }

    fn end_runs(&self, status: TaskRunStatus, error: Option<&str>) {
        *self.runs.progress.lock() = RunProgress::Ended {
            status,
            error: error.map(str::to_owned),
            at: self.clock.now(),
        };
    }
}

#[tokio::test]
async fn due_task_fires_once_and_follows_its_run() {
    let rig = Rig::hourly().await;
    assert_eq!(rig.poll().await, 0);
    rig.clock.advance(TimeDelta::minutes(50));
    for _ in 0..3 {
        assert_eq!(rig.poll().await, 1);
    }
    assert_eq!(rig.statuses().await, [TaskRunStatus::Running]);
    let task = rig.task().await;
    assert_eq!(task.next_run_at, Some(moment("2026-11-21T10:00:00Z")));
    assert_eq!(task.run_count, 1);
    rig.end_runs(TaskRunStatus::Failed, Some("broken"));
    rig.poll().await;
    assert_eq!(rig.statuses().await, [TaskRunStatus::Failed]);
    assert_eq!(rig.task().await.last_error.as_deref(), Some("broken"));
}

#[tokio::test]
async fn missed_times_fire_once() {
    let rig = Rig::hourly().await;
    rig.clock.advance(TimeDelta::hours(5));
    for _ in 0..3 {
        assert_eq!(rig.poll().await, 1);
    }
    let next = rig.task().await.next_run_at;
    assert_eq!(next, Some(moment("2026-11-21T14:00:00Z")));
}

#[tokio::test]
async fn single_task_fires_late_and_completes() {
    let rig = Rig::once().await;
    rig.clock.advance(TimeDelta::days(30));
    assert_eq!(rig.poll().await, 1);
    assert_eq!(rig.task().await.status, TaskStatus::Enabled);
    rig.end_runs(TaskRunStatus::Success, None);
    for _ in 0..2 {
        assert_eq!(rig.poll().await, 1);
    }
    let task = rig.task().await;
    assert_eq!(
        (task.status, task.next_run_at),
        (TaskStatus::Completed, None)
    );
}

#[tokio::test]
async fn active_run_skips_a_firing_and_refuses_a_trigger() {
    let rig = Rig::hourly().await;
    assert_eq!(rig.trigger().await, Ok(()));
    assert_eq!(rig.trigger().await, Err(TriggerError::Busy));
    rig.clock.advance(TimeDelta::hours(1));
    assert_eq!(rig.poll().await, 1);
    assert_eq!(
        rig.statuses().await,
        [TaskRunStatus::Skipped, TaskRunStatus::Running]
    );
    rig.end_runs(TaskRunStatus::Success, None);
    assert_eq!(rig.trigger().await, Ok(()));
    assert_eq!(rig.statuses().await.len(), 3);
}

#[tokio::test]
async fn busy_thread_skips_the_firing() {
    let rig = Rig::hourly().await;
    *rig.runs.refusal.lock() = Some(StartRefusal::Busy("busy".to_owned()));
    rig.clock.advance(TimeDelta::hours(1));
    assert_eq!(rig.poll().await, 1);
    assert_eq!(rig.statuses().await, [TaskRunStatus::Skipped]);
    assert_eq!(rig.trigger().await, Err(TriggerError::Busy));
    assert_eq!(rig.task().await.run_count, 0);
}

#[tokio::test]
async fn refused_start_fails_the_run() {
    let rig = Rig::once().await;
    *rig.runs.refusal.lock() = Some(StartRefusal::Refused("no model".to_owned()));
    let failed = Err(TriggerError::Failed("no model".to_owned()));
    assert_eq!(rig.trigger().await, failed);
    assert_eq!(rig.task().await.status, TaskStatus::Enabled);
    rig.clock.advance(TimeDelta::hours(1));
    assert_eq!(rig.poll().await, 2);
    assert_eq!(rig.statuses().await, [TaskRunStatus::Failed; 2]);
    let task = rig.task().await;
    assert_eq!(task.status, TaskStatus::Failed);
    assert_eq!(task.last_error.as_deref(), Some("no model"));
}

#[tokio::test]
async fn unfinished_start_is_repeated_with_the_same_run() {
    let rig = Rig::hourly().await;
    *rig.runs.refusal.lock() = Some(StartRefusal::Unavailable("away".to_owned()));
    rig.clock.advance(TimeDelta::minutes(50));
    assert_eq!(rig.poll().await, 1);
    assert_eq!(rig.statuses().await, [TaskRunStatus::Queued]);
    *rig.runs.refusal.lock() = None;
    rig.clock.advance(TimeDelta::seconds(30));
    assert_eq!(rig.poll().await, 1);
    rig.clock.advance(TimeDelta::seconds(30));
    for _ in 0..2 {
        assert_eq!(rig.poll().await, 2);
    }
    assert_eq!(rig.statuses().await, [TaskRunStatus::Running]);
    let started = rig.runs.started.lock().clone();
    assert_eq!(started[0].run_id, started[1].run_id);
    assert_eq!(started[0].thread_id, started[1].thread_id);
}

#[tokio::test]
async fn unfinished_start_fails_after_an_hour_of_attempts() {
    let rig = Rig::once().await;
    *rig.runs.refusal.lock() = Some(StartRefusal::Unavailable("away".to_owned()));
    rig.clock.advance(TimeDelta::minutes(50));
    rig.poll().await;
    for _ in 0..60 {
        rig.clock.advance(TimeDelta::minutes(1));
        rig.poll().await;
        assert_eq!(rig.statuses().await, [TaskRunStatus::Queued]);
    }
    for _ in 0..3 {
        rig.clock.advance(TimeDelta::minutes(1));
        rig.poll().await;
    }
    assert_eq!(rig.statuses().await, [TaskRunStatus::Failed]);
    assert_eq!(rig.task().await.status, TaskStatus::Failed);
}

#[tokio::test]
async fn failed_trigger_is_not_repeated() {
    let rig = Rig::hourly().await;
    *rig.runs.refusal.lock() = Some(StartRefusal::Unavailable("away".to_owned()));
    let failed = Err(TriggerError::Failed("away".to_owned()));
    assert_eq!(rig.trigger().await, failed);
    rig.clock.advance(TimeDelta::minutes(5));
    assert_eq!(rig.poll().await, 1);
    assert_eq!(rig.statuses().await, [TaskRunStatus::Failed]);
}

#[tokio::test]
async fn run_that_was_deleted_is_interrupted() {
    let rig = Rig::once().await;
    rig.clock.advance(TimeDelta::hours(1));
    rig.poll().await;
    *rig.runs.progress.lock() = RunProgress::Missing;
    rig.poll().await;
    assert_eq!(rig.statuses().await, [TaskRunStatus::Interrupted]);
    assert_eq!(rig.task().await.status, TaskStatus::Cancelled);
}

#[tokio::test]
async fn concurrent_nodes_start_one_run() {
    let rig = Rig::hourly().await;
    rig.clock.advance(TimeDelta::hours(1));
    let nodes: Vec<TaskScheduler> = (0..8)
        .map(|_| TaskScheduler::new(rig.firings(), true, Duration::from_secs(1)))
        .collect();
    for polled in futures_util::future::join_all(nodes.iter().map(TaskScheduler::poll)).await {
        polled.unwrap();
    }
    assert_eq!(rig.runs.started.lock().len(), 1);
}

#[tokio::test]
async fn disabled_scheduler_follows_runs_and_fires_nothing() {
    let rig = Rig::hourly().await;
    let scheduler = TaskScheduler::new(rig.firings(), false, Duration::from_secs(1));
    assert_eq!(rig.trigger().await, Ok(()));
    rig.clock.advance(TimeDelta::hours(3));
    rig.end_runs(TaskRunStatus::Success, None);
    scheduler.poll().await.unwrap();
    assert_eq!(rig.statuses().await, [TaskRunStatus::Success]);
    let next = rig.task().await.next_run_at;
    assert_eq!(next, Some(moment("2026-11-21T09:00:00Z")));
}
