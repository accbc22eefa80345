//! `/assistants`: one per graph, and those created by users.

mod change;
mod graph;
mod inner_graphs;
mod schemas;
mod search;
mod versions;

pub(crate) use change::{create, delete, patch};
pub(crate) use graph::{graph, subgraphs};
pub(crate) use schemas::schemas;
pub(crate) use search::{count, search};
pub(crate) use versions::{set_latest, versions};

use axum::Json;
use axum::extract::State;
use deerflow_domain::assistants::Assistant;
use uuid::Uuid;

use super::{App, JsonResult};
use crate::dialect::Dialect;
use crate::error::{ApiError, truncated};
use crate::extract::{Ids, Issues};
use crate::queries::assistants::{default_named, default_with_id, find};
use crate::requests::{check_config, is_server_key};
use crate::responses::assistant_json;
use crate::state::GatewayState;

use serde_json::{Map, Value};

/// `GET /assistants/{id}`.
pub(crate) async fn get(State(state): App, dialect: Dialect, ids: Ids) -> JsonResult {
    Ok(Json(assistant_json(
        &of_path(&state, &ids, dialect, false).await?,
        dialect,
    )))
}

/// Returns the id in the path.
fn id_of(ids: &Ids) -> Result<Uuid, ApiError> {
    Uuid::parse_str(ids.text("assistant_id"))
        .map_err(|_| ApiError::Unprocessable("Invalid assistant ID: must be a UUID".to_owned()))
}

/// Returns the assistant of the path. DeerFlow's routes, and with `by_name` the platform's, also
/// accept a graph's name.
async fn of_path(
    state: &GatewayState,
    ids: &Ids,
    dialect: Dialect,
    by_name: bool,
) -> Result<Assistant, ApiError> {
    let sent = ids.text("assistant_id");
    if by_name || !dialect.is_platform() {
        // DeerFlow shows the unchanged assistants of the graphs.
        if let Some(found) = default_named(state, sent).await {
            return Ok(found);
        }
    }
    if !dialect.is_platform()
        && let Ok(id) = Uuid::parse_str(sent)
        && let Some(found) = default_with_id(state, id).await
    {
        return Ok(found);
    }
    let unknown = || ApiError::AssistantNotFound(truncated(sent));
    let id = match id_of(ids) {
        Err(error) if dialect.is_platform() && !by_name => return Err(error),
        Err(_) => return Err(unknown()),
        Ok(id) => id,
    };
    find(state, id).await?.ok_or_else(unknown)
}

type Sent = Option<Map<String, Value>>;

/// Reads `config` and `context` of an assistant, if present. A context inside `config` becomes the
/// context.
fn read_setup(config: Sent, context: Sent, issues: &mut Issues) -> Result<(Sent, Sent), ApiError> {
    let Some(mut config) = config else {
        return Ok((None, context.map(allowed)));
    };
    let inner = check_config(config.clone(), issues, Dialect::Platform);
    let configurable = inner.configurable.unwrap_or_default();
    if !configurable.is_empty() && context.as_ref().is_some_and(|context| !context.is_empty()) {
        return Err(ApiError::BadRequest(
            "Cannot specify both configurable and context. Prefer setting context alone, which is its replacement.".to_owned(),
        ));
    }
    config.shift_remove("configurable");
    let context = if configurable.is_empty() {
        context
    } else {
        Some(configurable)
    };
    Ok((Some(config), context.map(allowed)))
}

/// Removes the keys that only the server sets.
fn allowed(options: Map<String, Value>) -> Map<String, Value> {
    options
        .into_iter()
        .filter(|(key, _)| !is_server_key(key))
        .collect()
}
