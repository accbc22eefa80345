//! `/channels/` and `/channels/{provider}/restart`: the channel service.

use axum::Json;
use axum::extract::{NestedPath, RawQuery, State};
use axum::response::Redirect;
use deerflow_domain::channels::ChannelRuntimeError;
use serde_json::{Map, Value, json};

use crate::error::ApiError;
use crate::extract::Ids;
use crate::guard::auth::require_admin;
use crate::routes::JsonResult;
use crate::state::ChannelServices;

/// Error for all other users.
const ADMINS_ONLY: &str = "Admin privileges required to manage channel runtime workers.";

/// `GET /channels/`: the state of all channels.
pub(crate) async fn status(State(channels): State<ChannelServices>) -> JsonResult {
    let statuses = channels.runtime.statuses().await;
    let channel = |status: &deerflow_domain::channels::ChannelStatus| {
        let state = json!({ "enabled": status.enabled, "running": status.is_running() });
        (status.provider.clone(), state)
    };
    let all: Map<String, Value> = statuses.iter().map(channel).collect();
    Ok(Json(json!({
        "service_running": channels.runtime.is_running(),
        "channels": all,
    })))
}

/// `GET /channels`: the address of [`status`] has a slash at its end.
pub(crate) async fn add_slash(prefix: NestedPath, RawQuery(query): RawQuery) -> Redirect {
    let query = query.map(|query| format!("?{query}")).unwrap_or_default();
    Redirect::temporary(&format!("{}/channels/{query}", prefix.as_str()))
}

/// `POST /channels/{provider}/restart`.
pub(crate) async fn restart(State(channels): State<ChannelServices>, ids: Ids) -> JsonResult {
    require_admin(ADMINS_ONLY)?;
    if !channels.runtime.is_running() {
        return Err(ApiError::Unavailable(
            "Channel service is not running".to_owned(),
        ));
    }
    let name = ids.text("provider");
    let message = match channels.runtime.restart(name).await {
        Ok(()) => {
            let message = format!("Channel {name} restarted successfully");
            return Ok(Json(json!({ "success": true, "message": message })));
        }
        Err(ChannelRuntimeError::Unavailable(reason)) => {
            return Err(ApiError::Unavailable(reason));
        }
        Err(error) => {
            tracing::warn!(provider = name, %error, "a channel did not restart");
            format!("Failed to restart channel {name}")
        }
    };
    Ok(Json(json!({ "success": false, "message": message })))
}
