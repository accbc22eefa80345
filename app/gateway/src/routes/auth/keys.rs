//! API keys that people make for their programs.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use chrono::TimeDelta;
use deerflow_domain::accounts::{AuditAction, NewAuditEntry};
use deerflow_domain::api_keys::{ApiKey, KeyCreation, MAX_KEYS_PER_USER, Rights, new_key};
use secrecy::ExposeSecret;
use serde_json::{Value, json};

use super::failures::value_error;
use super::visitor::Visitor;
use crate::error::{ApiError, truncated};
use crate::extract::{Ids, ShortBody};
use crate::requests::bodies::NewKeyBody;
use crate::routes::{App, JsonResult, ResponseResult};

/// Maximum length of a name, in characters.
const MAX_NAME: usize = 100;
/// Maximum lifetime of a key, in days; also the default.
const MAX_DAYS: u64 = 365;

/// `GET /v1/auth/keys`: the keys of the person that are not revoked.
pub(crate) async fn list(State(state): App, visitor: Visitor) -> JsonResult {
    let user = &visitor.session()?.account().id;
    let keys = state.security.sign_in.keys.list(Some(user)).await?;
    let live = keys.iter().filter(|key| key.revoked_at.is_none());
    let keys: Vec<Value> = live.map(key_json).collect();
    Ok(Json(json!({ "keys": keys })))
}

/// `POST /v1/auth/keys`: creates a key; the response is the only place that shows it.
pub(crate) async fn create(
    State(state): App,
    visitor: Visitor,
    ShortBody(body): ShortBody<NewKeyBody>,
) -> ResponseResult {
    let user = &visitor.session()?.account().id;
    let body = body.valid()?;
    let name = body.name.trim();
    if name.is_empty() || name.chars().count() > MAX_NAME {
        let text = format!("The name must have 1 to {MAX_NAME} characters");
        return Err(value_error("name", text));
    }
    let days = body.expires_in_days.unwrap_or(MAX_DAYS).clamp(1, MAX_DAYS);
    let now = state.process.clock.now();
    let lifetime = TimeDelta::days(i64::try_from(days).unwrap_or(1));
    let (record, key) = new_key(
        user,
        Rights::User,
        Some(name.to_owned()),
        Some(now + lifetime),
        now,
    );
    let entry = NewAuditEntry::new(AuditAction::KeyCreated, now)
        .by(user)
        .on(&*record.key_id);
    let keys = &state.security.sign_in.keys;
    let created = keys.create_own(
        record.clone(),
        key.hash,
        MAX_KEYS_PER_USER,
        visitor.sign(entry),
    );
    match created.await? {
        KeyCreation::Created => {}
        KeyCreation::TooMany => {
            return Err(ApiError::Conflict(format!(
                "You have {MAX_KEYS_PER_USER} keys. Revoke one of them first."
            )));
        }
        KeyCreation::NoAccount => {
            return Err(ApiError::Forbidden(
                "The account is disabled or deleted.".to_owned(),
            ));
        }
    }
    let mut shown = key_json(&record);
    shown["key"] = key.key.expose_secret().into();
    Ok((StatusCode::CREATED, Json(shown)).into_response())
}

/// `DELETE /v1/auth/keys/{key_id}`: revokes a key.
pub(crate) async fn revoke(State(state): App, visitor: Visitor, ids: Ids) -> ResponseResult {
    let user = &visitor.session()?.account().id;
    let id = ids.text("key_id");
    let entry = NewAuditEntry::new(AuditAction::KeyRevoked, state.process.clock.now())
        .by(user)
        .on(truncated(id));
    let keys = &state.security.sign_in.keys;
    if keys.revoke_own(user, id, visitor.sign(entry)).await? {
        Ok(StatusCode::NO_CONTENT.into_response())
    } else {
        Err(ApiError::NotFound(format!(
            "Key {} not found",
            truncated(id)
        )))
    }
}

fn key_json(key: &ApiKey) -> Value {
    json!({
        "id": key.key_id,
        "name": key.name,
        "created_at": key.created_at,
        "expires_at": key.expires_at,
    })
}
