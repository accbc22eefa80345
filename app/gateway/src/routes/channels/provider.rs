//! One chat platform as the settings page shows it.

use std::collections::BTreeMap;

use deerflow_domain::channels::{ChannelField, ChannelStatus, Connection};
use serde_json::{Map, Value, json};

use crate::error::ApiError;
use crate::state::ChannelServices;

/// Text that replaces a secret.
pub(super) const MASK: &str = "********";

/// Reports that `channel_connections` is disabled.
pub(super) fn require_connections(channels: &ChannelServices) -> Result<(), ApiError> {
    if channels.runtime.connections_enabled() {
        Ok(())
    } else {
        Err(ApiError::BadRequest(
            "Channel connections are disabled".to_owned(),
        ))
    }
}

/// Returns a platform whose connections are enabled.
pub(super) async fn enabled_provider(
    channels: &ChannelServices,
    provider: &str,
) -> Result<ChannelStatus, ApiError> {
    require_connections(channels)?;
    let mut statuses = channels.runtime.statuses().await.into_iter();
    let status = statuses
        .find(|status| status.provider == provider)
        .ok_or_else(|| ApiError::NotFound("Unknown channel provider".to_owned()))?;
    if status.profile.connections {
        Ok(status)
    } else {
        Err(ApiError::BadRequest(
            "Channel provider is not enabled".to_owned(),
        ))
    }
}

/// Returns the reason why no user can connect to a platform.
pub(super) fn unavailable_reason(status: &ChannelStatus) -> Option<String> {
    let name = &status.profile.display_name;
    if !status.profile.supported {
        Some(format!("This server does not support {name}."))
    } else if !status.configured {
        Some(format!(
            "Enter the required {name} credentials to connect this channel."
        ))
    } else if !status.is_running() {
        Some(format!(
            "{name} channel is configured but is not running. Check the credentials and service logs."
        ))
    } else {
        None
    }
}

/// Returns the word for the state of a connection.
pub(super) fn connection_status(connection: &Connection) -> &'static str {
    if connection.active {
        "connected"
    } else {
        "revoked"
    }
}

/// Returns the word for a user's newest connection to a platform. Without authentication no user has to
/// connect: `connected` then means that the channel runs.
fn provider_status(
    status: &ChannelStatus,
    user: &[Connection],
    is_authenticated: bool,
) -> &'static str {
    let is_available = unavailable_reason(status).is_none();
    let newest = user
        .iter()
        .find(|connection| connection.identity.provider == status.provider);
    match newest.map(connection_status) {
        Some("connected") | None if !is_available => "not_connected",
        None if is_authenticated => "not_connected",
        None => "connected",
        Some(word) => word,
    }
}

/// Builds the JSON of a platform. `values` are its credentials, and `user` are the connections of
/// the user, the newest first.
pub(super) fn provider_json(
    status: &ChannelStatus,
    values: &BTreeMap<String, String>,
    user: &[Connection],
    is_authenticated: bool,
) -> Value {
    let (profile, reason) = (&status.profile, unavailable_reason(status));
    let shown = |field: &ChannelField| {
        let value = values.get(&field.name).filter(|value| !value.is_empty())?;
        let text = if field.secret { MASK } else { value };
        Some((field.name.clone(), Value::from(text)))
    };
    let credential_values: Map<String, Value> = profile.fields.iter().filter_map(shown).collect();
    json!({
        "provider": status.provider,
        "display_name": profile.display_name,
        "enabled": profile.connections,
        "configured": status.configured,
        "connectable": reason.is_none(),
        "unavailable_reason": reason,
        "auth_mode": profile.connect_mode.as_str(),
        "connection_status": provider_status(status, user, is_authenticated),
        "credential_fields": profile.fields.iter().map(field_json).collect::<Vec<_>>(),
        "credential_values": credential_values,
    })
}

fn field_json(field: &ChannelField) -> Value {
    let kind = if field.secret { "password" } else { "text" };
    json!({ "name": field.name, "label": field.label, "type": kind, "required": true })
}
