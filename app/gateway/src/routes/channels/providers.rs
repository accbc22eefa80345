//! `GET /channels/providers`.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use deerflow_domain::channels::{ChannelStatus, Connection};
use harness::runtime::actor_context::effective_user_id;
use serde_json::{Value, json};

use super::provider::provider_json;
use crate::error::ApiError;
use crate::guard::auth::is_authentication_enabled;
use crate::routes::JsonResult;
use crate::state::ChannelServices;

/// `GET /channels/providers`: the platforms whose connections are enabled.
pub(crate) async fn providers(State(channels): State<ChannelServices>) -> JsonResult {
    if !channels.runtime.connections_enabled() {
        return Ok(Json(json!({ "enabled": false, "providers": [] })));
    }
    let user = effective_user_id();
    let connected = channels.connections.list(&user).await?;
    let mut providers = Vec::new();
    for status in channels.runtime.statuses().await {
        if status.profile.connections {
            providers.push(with_values(&channels, &status, &connected).await);
        }
    }
    Ok(Json(json!({ "enabled": true, "providers": providers })))
}

/// Builds the JSON of a platform in its current state.
pub(super) async fn current_provider(
    channels: &ChannelServices,
    provider: &str,
) -> Result<Value, ApiError> {
    let status = super::provider::enabled_provider(channels, provider).await?;
    let user = effective_user_id();
    let connected = channels.connections.list(&user).await?;
    Ok(with_values(channels, &status, &connected).await)
}

async fn with_values(
    channels: &ChannelServices,
    status: &ChannelStatus,
    connected: &[Connection],
) -> Value {
    // The page shows the other platforms if the credentials of one cannot be read.
    let values = channels.runtime.credentials(&status.provider).await;
    let values = values.unwrap_or_else(|error| {
        if status.profile.supported {
            tracing::warn!(provider = status.provider, %error, "cannot read the credentials of a channel");
        }
        BTreeMap::new()
    });
    provider_json(status, &values, connected, is_authentication_enabled())
}
