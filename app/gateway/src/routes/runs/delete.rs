//! `DELETE .../runs/{r}`: removes a run with its events and checkpoints.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::IntoResponse;

use crate::dialect::Dialect;
use crate::extract::Ids;
use crate::queries::threads::require_thread;
use crate::routes::{App, ResponseResult};

pub(crate) async fn delete(State(state): App, dialect: Dialect, ids: Ids) -> ResponseResult {
    let thread = ids.thread()?;
    let run_id = ids.run()?;
    if !dialect.is_platform() {
        require_thread(&state, &thread).await?;
    }
    state.runs.delete_run(Some(&thread), &run_id).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}
