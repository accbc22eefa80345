//! `/channels/{provider}/runtime-config`: credentials of bots, for administrators.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use deerflow_domain::accounts::AuditAction;
use deerflow_domain::channels::{ChannelField, ChannelRuntimeError, ChannelStatus};
use serde_json::{Map, Value};

use super::provider::{MASK, enabled_provider, unavailable_reason};
use super::providers::current_provider;
use crate::error::{ApiError, Issue};
use crate::extract::{Body, Ids, Issues};
use crate::guard::auth::require_admin;
use crate::requests::bodies::ChannelCredentials;
use crate::routes::auth::recorder::Recorder;
use crate::routes::{App, JsonResult};
use crate::state::ChannelServices;

/// Error for all other users.
const ADMINS_ONLY: &str = "Admin privileges required to manage channel runtime credentials.";

/// `POST /channels/{provider}/runtime-config`: stores credentials and restarts the channel. A
/// masked value that is sent back keeps the stored one.
pub(crate) async fn configure(
    State(channels): State<ChannelServices>,
    recorder: Recorder,
    ids: Ids,
    body: Body<ChannelCredentials>,
) -> JsonResult {
    require_admin(ADMINS_ONLY)?;
    let (body, mut issues) = body.parts();
    let sent = texts(body.values, &mut issues);
    issues.finish()?;
    let status = supported_provider(&channels, &ids).await?;
    let stored = channels.runtime.credentials(&status.provider).await?;
    let values = complete(&status.profile.fields, &sent, &stored)?;
    let configured = channels.runtime.configure(&status.provider, values).await;
    configured.map_err(|error| match error {
        ChannelRuntimeError::Refused(reason) => {
            tracing::warn!(
                provider = status.provider,
                reason,
                "a channel did not start with new credentials"
            );
            let name = &status.profile.display_name;
            ApiError::BadRequest(format!(
                "Failed to start {name} channel. Check the values and try again."
            ))
        }
        other => other.into(),
    })?;
    let action = AuditAction::ChannelChanged;
    recorder.record(action, &status.provider).await;
    Ok(Json(current_provider(&channels, &status.provider).await?))
}

/// `DELETE /channels/{provider}/runtime-config`: deletes stored credentials and disconnects all
/// users, whose connections would otherwise hold for the next bot.
pub(crate) async fn forget(State(state): App, recorder: Recorder, ids: Ids) -> JsonResult {
    require_admin(ADMINS_ONLY)?;
    let channels = &state.channels;
    let status = supported_provider(channels, &ids).await?;
    channels
        .connections
        .disconnect_all(&status.provider, state.process.clock.now())
        .await?;
    channels
        .runtime
        .forget_credentials(&status.provider)
        .await?;
    let action = AuditAction::ChannelChanged;
    recorder.record(action, &status.provider).await;
    Ok(Json(current_provider(channels, &status.provider).await?))
}

/// Returns the platform of the path, if this build has an adapter for it.
async fn supported_provider(
    channels: &ChannelServices,
    ids: &Ids,
) -> Result<ChannelStatus, ApiError> {
    let status = enabled_provider(channels, ids.text("provider")).await?;
    if status.profile.supported {
        return Ok(status);
    }
    let reason = unavailable_reason(&status).unwrap_or_default();
    Err(ApiError::BadRequest(reason))
}

/// Returns the texts of a body, and adds an issue for each other value.
fn texts(values: Map<String, Value>, issues: &mut Issues) -> BTreeMap<String, String> {
    let mut texts = BTreeMap::new();
    for (name, value) in values {
        match value {
            Value::String(text) => {
                texts.insert(name, text);
            }
            other => {
                let at = vec!["body".into(), "values".into(), name.into()];
                let message = "Input should be a valid string";
                issues.push(Issue::new("string_type", at, message, &other));
            }
        }
    }
    texts
}

/// Returns a value for each field.
fn complete(
    fields: &[ChannelField],
    sent: &BTreeMap<String, String>,
    stored: &BTreeMap<String, String>,
) -> Result<BTreeMap<String, String>, ApiError> {
    let mut values = BTreeMap::new();
    let mut missing = Vec::new();
    for field in fields {
        let text = sent.get(&field.name).map(|text| text.trim());
        let text = match text {
            Some(MASK) if field.secret => stored.get(&field.name).map(String::as_str),
            other => other,
        };
        match text.filter(|text| !text.is_empty()) {
            Some(text) => {
                values.insert(field.name.clone(), text.to_owned());
            }
            None => missing.push(field.label.as_str()),
        }
    }
    if missing.is_empty() {
        return Ok(values);
    }
    Err(ApiError::BadRequest(format!(
        "Missing required channel configuration: {}",
        missing.join(", ")
    )))
}
