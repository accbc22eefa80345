//! Sessions of the caller.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use deerflow_domain::accounts::{AuditAction, NewAuditEntry, Session};
use serde_json::{Value, json};
use uuid::Uuid;

use super::visitor::Visitor;
use crate::error::{ApiError, truncated};
use crate::extract::Ids;
use crate::routes::{App, JsonResult, ResponseResult};

/// `GET /v1/auth/sessions`: the valid sessions of the person, the newest first.
pub(crate) async fn list(State(state): App, visitor: Visitor) -> JsonResult {
    let current = visitor.session()?.session();
    let sessions = &state.security.sign_in.stores.sessions;
    let now = state.process.clock.now();
    let sessions = sessions.list(&current.user_id, now).await?;
    let sessions: Vec<Value> = sessions
        .iter()
        .map(|session| session_json(session, current.id))
        .collect();
    Ok(Json(json!({ "sessions": sessions })))
}

/// `DELETE /v1/auth/sessions/{id}`: ends one session.
pub(crate) async fn end(State(state): App, visitor: Visitor, ids: Ids) -> ResponseResult {
    let current = visitor.session()?.session();
    let text = ids.text("session_id");
    let not_found = || ApiError::NotFound(format!("Session {} not found", truncated(text)));
    let id = Uuid::parse_str(text).map_err(|_| not_found())?;
    let entry = NewAuditEntry::new(AuditAction::SessionEnded, state.process.clock.now())
        .by(&current.user_id)
        .on(id.to_string());
    let sessions = &state.security.sign_in.stores.sessions;
    let ended = sessions
        .end(&current.user_id, id, visitor.sign(entry))
        .await?;
    if !ended {
        return Err(not_found());
    }
    state
        .security
        .authenticator
        .sessions()
        .cache
        .forget_user(&current.user_id);
    let response = StatusCode::NO_CONTENT.into_response();
    Ok(if id == current.id {
        visitor.signed_out(response)
    } else {
        response
    })
}

/// `DELETE /v1/auth/sessions`: ends all sessions of the person but the one of the request.
pub(crate) async fn end_others(State(state): App, visitor: Visitor) -> JsonResult {
    let current = visitor.session()?.session();
    let user = &current.user_id;
    let entry = NewAuditEntry::new(AuditAction::SessionEnded, state.process.clock.now())
        .by(user)
        .on(&**user);
    let sessions = &state.security.sign_in.stores.sessions;
    let ended = sessions
        .end_all(user, Some(current.id), visitor.sign(entry))
        .await?;
    state
        .security
        .authenticator
        .sessions()
        .cache
        .forget_user(user);
    Ok(Json(json!({ "ended": ended })))
}

fn session_json(session: &Session, current: Uuid) -> Value {
    json!({
        "id": session.id,
        "created_at": session.created_at,
        "last_used_at": session.last_used_at,
        "expires_at": session.ends_at(),
        "user_agent": session.user_agent,
        "address": session.address,
        "current": session.id == current,
    })
}
