//! JSON of scheduled tasks and their runs.

use deerflow_domain::scheduled_tasks::{ScheduledTask, TaskRun, TaskSchedule};
use harness::clock::iso;
use serde_json::{Value, json};

/// Returns a task. While one of its runs is active, its status is `running`.
pub fn task_json(task: &ScheduledTask, is_active: bool) -> Value {
    let status = if is_active {
        "running"
    } else {
        task.status.as_str()
    };
    let schedule_spec = match &task.schedule {
        TaskSchedule::Once(at) => json!({ "run_at": iso(*at) }),
        TaskSchedule::Cron(fields) => json!({ "cron": fields }),
    };
    json!({
        "id": task.task_id,
        "user_id": task.user_id,
        "thread_id": task.thread_id,
        "context_mode": task.context_mode.as_str(),
        "assistant_id": "lead_agent",
        "title": task.title,
        "prompt": task.prompt,
        "schedule_type": task.schedule.kind(),
        "schedule_spec": schedule_spec,
        "timezone": task.timezone,
        "status": status,
        "overlap_policy": "skip",
        "next_run_at": task.next_run_at.map(iso),
        "last_run_at": task.last_run_at.map(iso),
        "last_run_id": task.last_run_id,
        "last_thread_id": task.last_thread_id,
        "last_error": task.last_error,
        "lease_owner": null,
        "lease_expires_at": null,
        "run_count": task.run_count,
        "created_at": iso(task.created_at),
        "updated_at": iso(task.updated_at),
    })
}

/// Returns a run of a task. Its run has an id from its start on.
pub fn task_run_json(run: &TaskRun) -> Value {
    json!({
        "id": run.task_run_id,
        "task_id": run.task_id,
        "thread_id": run.thread_id,
        "run_id": run.started_at.map(|_| &run.run_id),
        "scheduled_for": iso(run.scheduled_for),
        "trigger": run.trigger.as_str(),
        "status": run.status.as_str(),
        "error": run.error,
        "started_at": run.started_at.map(iso),
        "finished_at": run.finished_at.map(iso),
        "created_at": iso(run.created_at),
    })
}
