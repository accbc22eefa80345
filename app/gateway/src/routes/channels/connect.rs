//! `POST /channels/{provider}/connect`.

use axum::Json;
use axum::extract::State;
use deerflow_domain::channels::{CODE_VALIDITY, ConnectCode, NewCode, PendingCode};
use harness::runtime::actor_context::effective_user_id;
use serde_json::json;

use super::provider::{enabled_provider, unavailable_reason};
use crate::error::ApiError;
use crate::extract::Ids;
use crate::routes::{App, JsonResult};

/// `POST /channels/{provider}/connect`: creates a code that connects the sender to the user.
pub(crate) async fn connect(State(state): App, ids: Ids) -> JsonResult {
    let channels = &state.channels;
    let status = enabled_provider(channels, ids.text("provider")).await?;
    if let Some(reason) = unavailable_reason(&status) {
        return Err(ApiError::BadRequest(reason));
    }
    let (code, now) = (ConnectCode::random(), state.process.clock.now());
    let new = NewCode {
        hash: code.hash(),
        user_id: effective_user_id(),
        provider: status.provider.clone(),
        expires_at: now + CODE_VALIDITY,
    };
    match channels.connections.create_code(new, now).await? {
        PendingCode::Created => {}
        PendingCode::TooMany => return Err(ApiError::TooManyCodes),
    }
    let (profile, text) = (&status.profile, code.text());
    let url = profile.link.as_ref().map(|link| format!("{link}{text}"));
    Ok(Json(json!({
        "provider": status.provider,
        "mode": profile.connect_mode.as_str(),
        "url": url,
        "code": text,
        "instruction": format!("Send /connect {text} to the DeerFlow {} bot.", profile.display_name),
        "expires_in": CODE_VALIDITY.as_secs(),
    })))
}
