//! Sign-in, registration, setup and logout.

use axum::Json;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use deerflow_accounts::{Credentials, SignedIn};
use serde_json::json;

use super::failures::refusal;
use super::form;
use super::setup::require_setup;
use super::user::user_json;
use super::visitor::Visitor;
use crate::error::ApiError;
use crate::extract::ShortBody;
use crate::guard::cookies::{LIFETIME_SECONDS, SESSION, cookie};
use crate::requests::bodies::NewAccountBody;
use crate::routes::ResponseResult;
use crate::state::SecurityState;

/// Field of the password.
const PASSWORD: &str = "password";

/// `POST /v1/auth/login/local`: signs in with e-mail and password.
pub(crate) async fn login(
    State(security): State<SecurityState>,
    visitor: Visitor,
    request: Request,
) -> ResponseResult {
    let entered = form::read(request).await?;
    let signed_in = security
        .sign_in
        .service
        .login(&entered, &visitor.client)
        .await;
    let signed_in = signed_in.map_err(|error| refusal(error, PASSWORD))?;
    let body = json!({
        "expires_in": LIFETIME_SECONDS,
        "needs_setup": signed_in.account.needs_setup,
    });
    Ok(visitor.signed_in(&signed_in, Json(body).into_response()))
}

/// `POST /v1/auth/register`: creates an account of a user and signs in.
pub(crate) async fn register(
    State(security): State<SecurityState>,
    visitor: Visitor,
    ShortBody(body): ShortBody<NewAccountBody>,
) -> ResponseResult {
    let entered = credentials(body.valid()?);
    let sign_in = &security.sign_in;
    if !sign_in.rules.allows_registration() {
        let text = "Registration is disabled. Ask an administrator for an account.";
        return Err(ApiError::Forbidden(text.to_owned()));
    }
    let per_hour = sign_in.rules.registrations_per_hour();
    let signed_in = sign_in
        .service
        .register(&entered, per_hour, &visitor.client);
    let signed_in = signed_in.await.map_err(|error| refusal(error, PASSWORD))?;
    sign_in.presence.created();
    Ok(created(&visitor, &signed_in))
}

/// `POST /v1/auth/initialize`: creates the first administrator and signs in.
pub(crate) async fn initialize(
    State(security): State<SecurityState>,
    visitor: Visitor,
    ShortBody(body): ShortBody<NewAccountBody>,
) -> ResponseResult {
    let entered = credentials(body.valid()?);
    let sign_in = &security.sign_in;
    require_setup(sign_in, &visitor).await?;
    let signed_in = sign_in.service.initialize(&entered, &visitor.client).await;
    let signed_in = signed_in.map_err(|error| refusal(error, PASSWORD))?;
    sign_in.presence.created();
    Ok(created(&visitor, &signed_in))
}

/// `POST /v1/auth/logout`: ends the session, if there is one.
pub(crate) async fn logout(
    State(security): State<SecurityState>,
    visitor: Visitor,
) -> ResponseResult {
    if let Some(token) = cookie(&visitor.headers, SESSION) {
        let ended = security
            .sign_in
            .service
            .logout(token, &visitor.client)
            .await;
        ended.map_err(|error| refusal(error, PASSWORD))?;
    }
    let body = Json(json!({ "message": "Successfully logged out" }));
    Ok(visitor.signed_out(body.into_response()))
}

fn credentials(body: NewAccountBody) -> Credentials {
    Credentials {
        email: body.email,
        password: body.password.into(),
        persistent: body.remember_me,
    }
}

fn created(visitor: &Visitor, signed_in: &SignedIn) -> Response {
    let body = Json(user_json(&signed_in.account));
    visitor.signed_in(signed_in, (StatusCode::CREATED, body).into_response())
}
