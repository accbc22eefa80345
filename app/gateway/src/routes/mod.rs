//! Handlers: extract, call one verb, shape. The folder path is the URL.

pub(crate) mod admin;
pub(crate) mod agents;
pub(crate) mod aids;
pub(crate) mod artifacts;
pub(crate) mod assistants;
pub(crate) mod catalog;
pub(crate) mod console;
pub(crate) mod crons;
pub(crate) mod feed;
pub(crate) mod feedback;
pub(crate) mod mcp;
pub(crate) mod memory;
pub(crate) mod meta;
pub(crate) mod runs;
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
pub(crate) type Answer = Result<Json<Value>, ApiError>;
pub(crate) type Reply = Result<Response, ApiError>;

/// Does `work` to its end, even if the client leaves meanwhile: none of its steps is taken without the others.
pub(crate) async fn to_its_end<T, F>(
    state: &GatewayState,
    name: &'static str,
    work: F,
) -> Result<T, ApiError>
where
    T: Send + 'static,
    F: Future<Output = Result<T, ApiError>> + Send + 'static,
{
    let ended = state.tasks.spawn(TaskKind::Finish, name, work).await;
    ended
        .map_err(|error| ApiError::Internal(error.to_string()))?
        .map_err(|panic| ApiError::Internal(panic.to_string()))?
}

/// Cuts a page out of what was found when one more than `limit` was asked for, and says in headers whether there is more. The
/// total is exact on the last page only; before it means "at least one more".
pub(crate) fn paged<T>(
    mut found: Vec<T>,
    offset: usize,
    limit: usize,
) -> (Vec<T>, Vec<(&'static str, String)>) {
    if found.len() <= limit {
        let total = offset + found.len();
        return (found, vec![("x-pagination-total", total.to_string())]);
    }
    found.truncate(limit);
    let next = offset + limit;
    (
        found,
        vec![
            ("x-pagination-total", (next + 1).to_string()),
            ("x-pagination-next", next.to_string()),
        ],
    )
}
