//! The person as the web UI reads it.

use axum::Json;
use axum::extract::State;
use deerflow_domain::accounts::{Account, Role};
use harness::runtime::actor_context::effective_user_id;
use serde_json::{Value, json};

use super::visitor::Visitor;
use crate::guard::auth::is_admin;
use crate::routes::JsonResult;
use crate::state::SecurityState;

/// Formats an account.
pub(super) fn user_json(account: &Account) -> Value {
    json!({
        "id": account.id,
        "email": account.email.as_str(),
        "system_role": account.role.as_str(),
        "needs_setup": account.needs_setup,
        "oauth_provider": account.identity.as_ref().map(|identity| identity.provider()),
    })
}

/// `GET /v1/auth/me`: the person of the session, or the user whom a program acts for.
pub(crate) async fn me(visitor: Visitor, State(security): State<SecurityState>) -> JsonResult {
    if let Some(session) = visitor.session_if_any() {
        return Ok(Json(user_json(session.account())));
    }
    let id = effective_user_id();
    let account = if security.authenticator.is_disabled() {
        None
    } else {
        security.sign_in.stores.accounts.find(&id).await?
    };
    Ok(Json(match account {
        Some(account) => user_json(&account),
        None => {
            let role = if is_admin() { Role::Admin } else { Role::User };
            json!({
                "id": id,
                // Clients check the form of the address.
                "email": "default@test.local",
                "system_role": role.as_str(),
                "needs_setup": false,
                "oauth_provider": null,
            })
        }
    }))
}
