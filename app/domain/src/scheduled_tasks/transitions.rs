//! Changes of a task by its firings and by the ends of its runs.

use chrono::{DateTime, Utc};

use super::record::{ScheduledTask, TaskRun, TaskRunStatus, TaskStatus, TaskTrigger};
use super::timing::TaskSchedule;

/// Reason of a firing that was skipped because of an active run of its task.
pub const ACTIVE_RUN: &str = "another run of this task is active";

/// Result of a firing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Begun {
    /// The run is stored as queued; the caller creates it.
    Queued,
    /// A run of the task is active; the firing is stored as skipped, unless it was manual.
    Busy,
    /// The task does not exist, or no longer fires for this time; nothing was written.
    Gone,
}

/// Scheduled firing of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Firing {
    /// Scheduled time.
    pub fires_for: DateTime<Utc>,
    /// Next firing of the task.
    pub next: Option<DateTime<Utc>>,
}

/// Applies a firing: by schedule, or by the user's request without `firing`. Changes nothing
/// unless the result is [`Begun::Queued`], or [`Begun::Busy`] by schedule.
pub fn begin(
    task: &mut ScheduledTask,
    run: &mut TaskRun,
    firing: Option<Firing>,
    has_active: bool,
) -> Begun {
    let Some(firing) = firing else {
        return if has_active {
            Begun::Busy
        } else {
            Begun::Queued
        };
    };
    if task.status != TaskStatus::Enabled || task.next_run_at != Some(firing.fires_for) {
        return Begun::Gone;
    }
    task.next_run_at = firing.next;
    task.updated_at = run.created_at;
    if !has_active {
        return Begun::Queued;
    }
    *run = run.ended(
        TaskRunStatus::Skipped,
        Some(ACTIVE_RUN.to_owned()),
        run.created_at,
    );
    conclude(task, run);
    Begun::Busy
}

/// Applies the new state of a run to its task.
pub fn advance(task: &mut ScheduledTask, seen: &TaskRun, run: &TaskRun) {
    if let (TaskRunStatus::Queued, Some(at)) = (seen.status, run.started_at) {
        task.last_run_at = Some(at);
        task.last_run_id = Some(run.run_id.clone());
        task.last_thread_id = Some(run.thread_id.clone());
        task.last_error = None;
        task.run_count += 1;
        task.updated_at = at;
    }
    if let (true, Some(at)) = (!run.status.is_active(), run.finished_at) {
        task.updated_at = at;
        conclude(task, run);
    }
}

/// Applies the end of a firing. A one-time task that was fired by its schedule ends with it.
fn conclude(task: &mut ScheduledTask, run: &TaskRun) {
    task.last_error.clone_from(&run.error);
    let is_last = matches!(task.schedule, TaskSchedule::Once(_))
        && run.trigger == TaskTrigger::Scheduled
        && task.status == TaskStatus::Enabled
        && task.next_run_at.is_none();
    if is_last {
        task.status = match run.status {
            TaskRunStatus::Success => TaskStatus::Completed,
            TaskRunStatus::Interrupted => TaskStatus::Cancelled,
            _ => TaskStatus::Failed,
        };
    }
}
