//! `POST /scheduled-tasks`.

use axum::Json;
use axum::extract::State;
use deerflow_domain::scheduled_tasks::{ScheduledTask, TaskCreated, TaskStatus};
use harness::runtime::actor_context::effective_user_id;

use super::input::{MAX_PROMPT, MAX_TITLE, check_length, read_context, read_schedule};
use super::thread_not_found;
use crate::error::ApiError;
use crate::extract::Body;
use crate::queries::threads::require_thread;
use crate::requests::bodies::TaskCreate;
use crate::responses::task_json;
use crate::routes::{App, JsonResult};

/// Maximum number of tasks of one user.
const MAX_TASKS: u64 = 200;

pub(crate) async fn create(State(state): App, body: Body<TaskCreate>) -> JsonResult {
    let (body, issues) = body.parts();
    issues.finish()?;
    check_length("title", &body.title, MAX_TITLE)?;
    check_length("prompt", &body.prompt, MAX_PROMPT)?;
    let (context_mode, thread_id) =
        read_context(body.context_mode.as_deref(), body.thread_id.as_deref())?;
    let schedule = read_schedule(&body.schedule_type, &body.schedule_spec, &body.timezone)?;
    let now = state.process.clock.now();
    schedule
        .require_future(now, state.schedules.min_once_delay)
        .map_err(|error| ApiError::Unprocessable(error.to_string()))?;
    if let Some(thread) = &thread_id {
        require_thread(&state, thread)
            .await
            .map_err(|error| match error {
                ApiError::ThreadNotFound(_) => thread_not_found(),
                other => other,
            })?;
    }
    let task = ScheduledTask {
        task_id: format!("task-{}", state.process.ids.random().simple()),
        user_id: effective_user_id(),
        context_mode,
        thread_id,
        title: body.title,
        prompt: body.prompt,
        next_run_at: schedule.next(&body.timezone, now),
        schedule,
        timezone: body.timezone,
        status: TaskStatus::Enabled,
        last_run_at: None,
        last_run_id: None,
        last_thread_id: None,
        last_error: None,
        run_count: 0,
        version: 1,
        created_at: now,
        updated_at: now,
    };
    let response = task_json(&task, false);
    match state.schedules.tasks.create(task, MAX_TASKS).await? {
        TaskCreated::New => Ok(Json(response)),
        TaskCreated::NoThread => Err(thread_not_found()),
        TaskCreated::LimitReached => Err(ApiError::Unprocessable(format!(
            "You have reached the limit of {MAX_TASKS} scheduled tasks. Delete one first."
        ))),
    }
}
