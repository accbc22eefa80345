//! Change of the password by its owner.

use axum::Json;
use axum::extract::State;
use axum::response::IntoResponse;
use deerflow_accounts::PasswordChange;
use harness::runtime::actor_context::current;
use serde_json::json;

use super::failures::refusal;
use super::visitor::Visitor;
use crate::error::SignInFailure;
use crate::extract::ShortBody;
use crate::requests::bodies::PasswordChangeBody;
use crate::routes::ResponseResult;
use crate::state::SecurityState;

/// `POST /v1/auth/change-password`: changes the password, ends all sessions and starts a new one.
pub(crate) async fn change(
    State(security): State<SecurityState>,
    visitor: Visitor,
    ShortBody(body): ShortBody<PasswordChangeBody>,
) -> ResponseResult {
    let body = body.valid()?;
    let source = current().and_then(|actor| actor.auth_source);
    if matches!(source.as_deref(), Some("disabled" | "loopback")) {
        let text = "Passwords cannot be changed without a signed-in account";
        return Err(SignInFailure::password_change(text).into());
    }
    let session = visitor.session()?;
    let change = PasswordChange {
        current: body.current_password.into(),
        new: body.new_password.into(),
        new_email: body.new_email,
        persistent: body.remember_me.unwrap_or_else(|| visitor.wish()),
    };
    let service = &security.sign_in.service;
    let signed_in = service.change_password(session.account(), &change, &visitor.client);
    let signed_in = signed_in
        .await
        .map_err(|error| refusal(error, "new_password"))?;
    let body = Json(json!({ "message": "Password changed successfully" }));
    Ok(visitor.signed_in(&signed_in, body.into_response()))
}
