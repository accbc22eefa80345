//! `PATCH` and `DELETE /scheduled-tasks/{id}`, `POST /scheduled-tasks/{id}/pause` and `/resume`.

use axum::Json;
use axum::extract::State;
use chrono::{DateTime, TimeDelta, Utc};
use deerflow_domain::scheduled_tasks::{ScheduledTask, TaskStatus, TaskUpdated, TimingError};
use harness::runtime::actor_context::effective_user_id;
use serde_json::json;

use super::input::{MAX_PROMPT, MAX_TITLE, check_length, read_context, read_schedule};
use super::read::view;
use super::task_runs::TaskRuns;
use super::{not_found, require_task, thread_not_found};
use crate::error::ApiError;
use crate::extract::{Body, Ids};
use crate::requests::bodies::TaskPatch;
use crate::routes::{App, JsonResult};

/// Maximum number of attempts of a change that other writes precede.
const ATTEMPTS: usize = 5;

pub(crate) async fn patch(state: App, ids: Ids, body: Body<TaskPatch>) -> JsonResult {
    let (body, issues) = body.parts();
    issues.finish()?;
    if let Some(title) = &body.title {
        check_length("title", title, MAX_TITLE)?;
    }
    if let Some(prompt) = &body.prompt {
        check_length("prompt", prompt, MAX_PROMPT)?;
    }
    let least = state.schedules.min_once_delay;
    change(state, ids, |task, now| patched(task, &body, now, least)).await
}

pub(crate) async fn pause(state: App, ids: Ids) -> JsonResult {
    change(state, ids, |task, _| paused(task)).await
}

pub(crate) async fn resume(state: App, ids: Ids) -> JsonResult {
    change(state, ids, resumed).await
}

pub(crate) async fn delete(State(state): App, ids: Ids) -> JsonResult {
    let id = ids.text("task_id");
    let deleted = state
        .schedules
        .tasks
        .delete(&effective_user_id(), id)
        .await?;
    if deleted {
        Ok(Json(json!({ "id": id, "deleted": true })))
    } else {
        Err(not_found())
    }
}

/// Applies a change to the task of the path, again if another write precedes it.
async fn change(
    State(state): App,
    ids: Ids,
    apply: impl Fn(&ScheduledTask, DateTime<Utc>) -> Result<ScheduledTask, ApiError>,
) -> JsonResult {
    TaskRuns::firings(&state)
        .follow_task(&require_task(&state, &ids).await?.task_id)
        .await?;
    for _ in 0..ATTEMPTS {
        let task = require_task(&state, &ids).await?;
        let now = state.process.clock.now();
        let changed = ScheduledTask {
            updated_at: now,
            ..apply(&task, now)?
        };
        match state.schedules.tasks.update(changed).await? {
            TaskUpdated::Stored => return view(&state, &ids).await,
            TaskUpdated::NoThread => return Err(thread_not_found()),
            TaskUpdated::Outdated => {}
        }
    }
    Err(ApiError::Conflict(
        "The scheduled task changed meanwhile. Try again.".to_owned(),
    ))
}

fn patched(
    task: &ScheduledTask,
    body: &TaskPatch,
    now: DateTime<Utc>,
    min_delay: TimeDelta,
) -> Result<ScheduledTask, ApiError> {
    let mut changed = task.clone();
    if let Some(title) = &body.title {
        changed.title.clone_from(title);
    }
    if let Some(prompt) = &body.prompt {
        changed.prompt.clone_from(prompt);
    }
    if body.context_mode.is_some() || body.thread_id.is_some() {
        let mode = body.context_mode.as_deref();
        let mode = mode.unwrap_or(task.context_mode.as_str());
        let current = task.thread_id.as_ref().map(|thread| thread.as_str());
        let thread = body.thread_id.as_deref().or(current);
        (changed.context_mode, changed.thread_id) = read_context(Some(mode), thread)?;
    }
    if body.schedule_spec.is_some() || body.timezone.is_some() {
        let zone = body.timezone.as_deref().unwrap_or(&task.timezone);
        changed.schedule = match &body.schedule_spec {
            Some(spec) => read_schedule(task.schedule.kind(), spec, zone)?,
            None => task.schedule.in_zone(zone).map_err(unprocessable)?,
        };
        changed.timezone = zone.to_owned();
    }
    let is_rescheduled = (&changed.schedule, &changed.timezone) != (&task.schedule, &task.timezone);
    if !is_rescheduled {
        return Ok(changed);
    }
    if changed.schedule != task.schedule {
        changed
            .schedule
            .require_future(now, min_delay)
            .map_err(unprocessable)?;
    }
    if task.status == TaskStatus::Paused {
        return Ok(changed);
    }
    let next = changed.schedule.next(&changed.timezone, now);
    // A finished task runs again at its new time.
    if next.is_some() {
        changed.status = TaskStatus::Enabled;
    }
    changed.next_run_at = next;
    Ok(changed)
}

fn paused(task: &ScheduledTask) -> Result<ScheduledTask, ApiError> {
    match task.status {
        TaskStatus::Enabled | TaskStatus::Paused => Ok(ScheduledTask {
            status: TaskStatus::Paused,
            next_run_at: None,
            ..task.clone()
        }),
        finished => Err(ApiError::Conflict(format!(
            "The scheduled task is {} and does not fire again",
            finished.as_str()
        ))),
    }
}

fn resumed(task: &ScheduledTask, now: DateTime<Utc>) -> Result<ScheduledTask, ApiError> {
    if task.status == TaskStatus::Enabled {
        return Ok(task.clone());
    }
    let next = task.schedule.next(&task.timezone, now);
    Ok(ScheduledTask {
        status: TaskStatus::Enabled,
        next_run_at: Some(next.ok_or_else(|| unprocessable(TimingError::Past))?),
        ..task.clone()
    })
}

fn unprocessable(error: TimingError) -> ApiError {
    ApiError::Unprocessable(error.to_string())
}

#[cfg(test)]
#[path = "change_tests.rs"]
mod tests;
