//! Handlers: extract, call one method, format. The folder path is the URL.

pub(crate) mod absent_features;
pub(crate) mod admin;
pub(crate) mod agents;
pub(crate) mod artifacts;
pub(crate) mod assist;
pub(crate) mod assistants;
pub(crate) mod auth;
pub(crate) mod catalog;
pub(crate) mod channels;
pub(crate) mod console;
pub(crate) mod crons;
pub(crate) mod docs;
pub(crate) mod feedback;
pub(crate) mod flows;
pub(crate) mod idempotency;
pub(crate) mod journal;
pub(crate) mod mcp;
pub(crate) mod memory;
pub(crate) mod meta;
mod paged_list;
pub(crate) mod protocol;
pub(crate) mod runs;
pub(crate) mod scheduled_tasks;
pub(crate) mod skills;
pub(crate) mod store;
pub(crate) mod threads;
pub(crate) mod uploads;

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::Response;
use harness::runtime::tasks::TaskKind;
use serde_json::Value;

use crate::error::ApiError;
use crate::state::GatewayState;

pub(crate) type App = State<Arc<GatewayState>>;
pub(crate) type JsonResult = Result<Json<Value>, ApiError>;
pub(crate) type ResponseResult = Result<Response, ApiError>;

/// Runs `work` to completion even if the client disconnects, so that its steps are not separated.
pub(crate) async fn run_to_completion<T, F>(
    state: &GatewayState,
    name: &'static str,
    work: F,
) -> Result<T, ApiError>
where
    T: Send + 'static,
    F: Future<Output = Result<T, ApiError>> + Send + 'static,
{
    let ended = state
        .process
        .tasks
        .spawn(TaskKind::Finish, name, work)
        .await;
    ended
        .map_err(|error| ApiError::Internal(error.to_string()))?
        .map_err(|panic| ApiError::Internal(panic.to_string()))?
}

/// Truncates `matches`, which was read with `limit + 1`, to a page and returns the pagination
/// headers. The total is exact on the last page only; before it means "at least one more".
pub(crate) fn paginate<T>(
    mut matches: Vec<T>,
    offset: usize,
    limit: usize,
) -> (Vec<T>, Vec<(&'static str, String)>) {
    if matches.len() <= limit {
        let total = offset + matches.len();
        return (matches, vec![("x-pagination-total", total.to_string())]);
    }
    matches.truncate(limit);
    let next = offset + limit;
    (
        matches,
        vec![
            ("x-pagination-total", (next + 1).to_string()),
            ("x-pagination-next", next.to_string()),
        ],
    )
}
