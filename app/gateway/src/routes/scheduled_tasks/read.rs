//! Reads of tasks and of their runs. The state of active runs is updated first, so that it is
//! correct also where no scheduler runs.

use std::collections::HashSet;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use harness::ids::ThreadId;
use harness::runtime::actor_context::effective_user_id;
use serde_json::Value;

use super::task_runs::TaskRuns;
use super::{require_task, thread_not_found};
use crate::error::ApiError;
use crate::extract::{Ids, Query};
use crate::queries::threads::require_thread;
use crate::responses::{task_json, task_run_json};
use crate::routes::{App, JsonResult};
use crate::state::GatewayState;

/// Maximum offset of a page.
const MAX_OFFSET: u64 = 1_000_000_000;

pub(crate) async fn get(State(state): App, ids: Ids) -> JsonResult {
    let task = require_task(&state, &ids).await?;
    TaskRuns::firings(&state).follow_task(&task.task_id).await?;
    view(&state, &ids).await
}

pub(crate) async fn list(State(state): App) -> JsonResult {
    Ok(Json(tasks(&state, None).await?.into()))
}

pub(crate) async fn list_on_thread(State(state): App, ids: Ids) -> JsonResult {
    let thread = ids.thread()?;
    require_thread(&state, &thread)
        .await
        .map_err(|error| match error {
            ApiError::ThreadNotFound(_) => thread_not_found(),
            other => other,
        })?;
    Ok(Json(tasks(&state, Some(&thread)).await?.into()))
}

pub(crate) async fn runs(State(state): App, ids: Ids, query: Query) -> JsonResult {
    let limit = query.number("limit", 1..=200)?.unwrap_or(50) as usize;
    let offset = query.number("offset", 0..=MAX_OFFSET)?.unwrap_or(0) as usize;
    let task = require_task(&state, &ids).await?.task_id;
    TaskRuns::firings(&state).follow_task(&task).await?;
    let runs = state.schedules.tasks.runs(&task, limit, offset).await?;
    Ok(Json(runs.iter().map(task_run_json).collect()))
}

/// Returns the task of the path as it is stored.
pub(super) async fn view(state: &GatewayState, ids: &Ids) -> JsonResult {
    let task = require_task(state, ids).await?;
    let active = state.schedules.tasks.active(Some(&task.task_id), 1).await?;
    Ok(Json(task_json(&task, !active.is_empty())))
}

/// Returns the caller's tasks, of all threads or of one.
async fn tasks(
    state: &Arc<GatewayState>,
    thread: Option<&ThreadId>,
) -> Result<Vec<Value>, ApiError> {
    let (store, user) = (&state.schedules.tasks, effective_user_id());
    let firings = TaskRuns::firings(state);
    for run in store.active_of(&user).await? {
        firings.follow(&run).await?;
    }
    let active: HashSet<String> = store
        .active_of(&user)
        .await?
        .into_iter()
        .map(|run| run.task_id)
        .collect();
    let tasks = store.list(&user, thread).await?;
    Ok(tasks
        .iter()
        .map(|task| task_json(task, active.contains(&task.task_id)))
        .collect())
}
