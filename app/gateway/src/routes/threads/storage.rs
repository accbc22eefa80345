//! `GET /threads/{t}/storage`: size of the stored states of a thread.

use axum::Json;
use axum::extract::State;

use crate::extract::Ids;
use crate::queries::threads::require_thread;
use crate::responses::storage_json;
use crate::routes::{App, JsonResult};

/// Returns the numbers of stored checkpoints, values and pending tasks, and their sizes in bytes.
pub(crate) async fn storage(State(state): App, ids: Ids) -> JsonResult {
    let thread = ids.thread()?;
    require_thread(&state, &thread).await?;
    let storage = state.thread_services.threads.storage(&thread).await?;
    Ok(Json(storage_json(&thread, &storage)))
}
