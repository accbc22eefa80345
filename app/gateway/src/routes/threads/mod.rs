//! `/threads`: rows, states and histories.

mod branch;
mod compact;
mod copy;
mod create;
mod delete;
mod get;
pub(crate) mod goal;
mod history;
mod options;
mod patch;
mod pending_tasks;
mod search;
mod state;
mod storage;
mod update;
mod update_state;

pub(crate) use branch::branch;
pub(crate) use compact::compact;
pub(crate) use copy::copy;
pub(crate) use create::create;
pub(crate) use delete::{delete, delete_matching, prune};
pub(crate) use get::get;
pub(crate) use history::{by_body as history_by_body, by_query as history_by_query};
pub(crate) use patch::patch;
pub(crate) use search::{count, search};
pub(crate) use state::{at as state_at, at_body as state_at_body, patch_state, state};
pub(crate) use storage::storage;
pub(crate) use update_state::update_state;

use axum::http::HeaderValue;
use axum::response::Response;
use harness::runtime::agent::AssistantPin;
use serde_json::{Map, Value};

use crate::dialect::Dialect;

/// Adds headers whose values are numbers.
pub(crate) fn add_headers(response: &mut Response, headers: Vec<(&'static str, String)>) {
    for (name, value) in headers {
        if let Ok(value) = HeaderValue::from_str(&value) {
            response.headers_mut().insert(name, value);
        }
    }
}

/// Returns metadata without the keys that only the server sets.
pub(crate) fn client_metadata(
    mut metadata: Map<String, Value>,
    dialect: Dialect,
) -> Map<String, Value> {
    let of_deerflow: &[&str] = if dialect.is_platform() {
        &[]
    } else {
        &["owner_id", "user_id"]
    };
    for key in [
        "thread_id",
        "run_id",
        "assistant_id",
        "cron_id",
        "auth_token",
        AssistantPin::METADATA_KEY,
    ]
    .iter()
    .chain(of_deerflow)
    {
        metadata.shift_remove(*key);
    }
    metadata
}
