//! `/assistants`: one comes with every graph, and users make others.

mod change;
mod drawing;
mod schemas;
mod search;
mod versions;

pub(crate) use change::{create, delete, patch};
pub(crate) use drawing::{graph, subgraphs};
pub(crate) use schemas::schemas;
pub(crate) use search::{count, search};
pub(crate) use versions::{set_latest, versions};

use axum::Json;
use axum::extract::State;
use deerflow_domain::assistants::Assistant;
use uuid::Uuid;

use super::{Answer, App};
use crate::assistants::{defaults, find};
use crate::dialect::Dialect;
use crate::error::ApiError;
use crate::extract::{Body, Fields, Ids};
use crate::input::is_server_key;
use crate::state::GatewayState;
use crate::wire::assistant_json;

use serde_json::{Map, Value};

/// `GET /assistants/{id}`.
pub(crate) async fn get(State(state): App, dialect: Dialect, ids: Ids) -> Answer {
    Ok(Json(assistant_json(
        &of_path(&state, &ids, dialect, false).await?,
        dialect,
    )))
}

/// The id in the path.
fn id_of(ids: &Ids) -> Result<Uuid, ApiError> {
    Uuid::parse_str(ids.text("assistant_id"))
        .map_err(|_| ApiError::Unprocessable("Invalid assistant ID: must be a UUID".to_owned()))
}

/// The assistant of the path. Only some routes of the platform take a graph's name for an id; DeerFlow's know nothing else.
async fn of_path(
    state: &GatewayState,
    ids: &Ids,
    dialect: Dialect,
    by_name: bool,
) -> Result<Assistant, ApiError> {
    let sent = ids.text("assistant_id");
    if by_name || !dialect.is_platform() {
        // DeerFlow shows them as they came with their graphs.
        let meant = |own: &Assistant| {
            own.content.graph == sent || (!dialect.is_platform() && own.id.to_string() == sent)
        };
        if let Some(found) = defaults(state).await.into_iter().find(meant) {
            return Ok(found);
        }
    }
    let unknown = || ApiError::AssistantNotFound(sent.chars().take(80).collect());
    let id = match id_of(ids) {
        Err(error) if dialect.is_platform() && !by_name => return Err(error),
        Err(_) => return Err(unknown()),
        Ok(id) => id,
    };
    find(state, id).await?.ok_or_else(unknown)
}

type Sent = Option<Map<String, Value>>;

/// `config` and `context` of an assistant, each if it was sent. A context inside `config` becomes the context.
fn read_setup(Body(body): &mut Body) -> Result<(Sent, Sent), ApiError> {
    let config = body.object("config");
    let context = body.object("context");
    let Some(mut config) = config else {
        return Ok((None, context.map(allowed)));
    };
    let mut inner = Fields::new("body", config.clone());
    inner.texts("tags");
    inner.number("recursion_limit", 1..=u64::from(u32::MAX));
    let configurable = inner.object("configurable").unwrap_or_default();
    inner.finish()?;
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

/// Options without those that only the server sets.
fn allowed(options: Map<String, Value>) -> Map<String, Value> {
    options
        .into_iter()
        .filter(|(key, _)| !is_server_key(key))
        .collect()
}
