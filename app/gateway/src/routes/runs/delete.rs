//! `DELETE .../runs/{r}`: with its events and checkpoints.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::IntoResponse;

use crate::dialect::Dialect;
use crate::error::ApiError;
use crate::extract::Ids;
use crate::reads::require_thread;
use crate::routes::{App, Reply};

pub(crate) async fn delete(State(state): App, dialect: Dialect, ids: Ids) -> Reply {
    let thread = ids.thread()?;
    let run_id = ids.run()?;
    if !dialect.is_platform() {
        require_thread(&state, &thread).await?;
    }
    let run = state.runs.get_run(&thread, &run_id).await?.ok_or_else(|| ApiError::RunNotFound(run_id.to_string()))?;
    if !run.status.is_terminal() {
        return Err(ApiError::Conflict(format!("Run {run_id} is still active. Cancel it before deleting it.")));
    }
    state.runs.delete_run(&thread, &run_id).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}
