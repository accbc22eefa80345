//! `/channels/connections`: the accounts of the user.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use deerflow_domain::channels::Connection;
use harness::runtime::actor_context::effective_user_id;
use serde_json::{Value, json};
use uuid::Uuid;

use super::provider::{connection_status, require_connections};
use crate::error::ApiError;
use crate::extract::Ids;
use crate::routes::{App, JsonResult};
use crate::state::ChannelServices;

/// `GET /channels/connections`: the connections of the user, the newest first.
pub(crate) async fn connections(State(channels): State<ChannelServices>) -> JsonResult {
    let listed = if channels.runtime.connections_enabled() {
        channels.connections.list(&effective_user_id()).await?
    } else {
        Vec::new()
    };
    let connections: Vec<Value> = listed.iter().map(connection_json).collect();
    Ok(Json(json!({ "connections": connections })))
}

/// `DELETE /channels/connections/{connection_id}`.
pub(crate) async fn disconnect(State(state): App, ids: Ids) -> Result<StatusCode, ApiError> {
    require_connections(&state.channels)?;
    let not_found = || ApiError::NotFound("Channel connection not found".to_owned());
    let id = Uuid::parse_str(ids.text("connection_id")).map_err(|_| not_found())?;
    let disconnected = state
        .channels
        .connections
        .disconnect(&effective_user_id(), id, state.process.clock.now())
        .await?;
    disconnected
        .then_some(StatusCode::NO_CONTENT)
        .ok_or_else(not_found)
}

fn connection_json(connection: &Connection) -> Value {
    let identity = &connection.identity;
    let workspace = Some(&identity.workspace).filter(|workspace| !workspace.is_empty());
    json!({
        "id": connection.id,
        "provider": identity.provider,
        "status": connection_status(connection),
        "external_account_id": identity.account,
        "external_account_name": connection.account_name,
        "workspace_id": workspace,
        "workspace_name": connection.workspace_name,
        "scopes": [],
        "metadata": connection.metadata,
    })
}
