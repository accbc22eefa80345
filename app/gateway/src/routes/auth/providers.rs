//! Identity providers: their list, and the way to them.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use deerflow_accounts::oidc::{Destination, PendingSignIn, STATE_AGE, local_path};
use harness::config::{OidcConfig, OidcProviderConfig};
use serde_json::{Value, json};

use super::state_cookie::{StateCookie, callback_path};
use super::visitor::Visitor;
use crate::error::{ApiError, truncated};
use crate::extract::{Ids, Query};
use crate::routes::{App, ResponseResult};
use crate::state::{GatewayState, SecurityState};

/// `GET /v1/auth/providers`: the identity providers, in the order of the configuration.
pub(crate) async fn list(State(security): State<SecurityState>) -> Json<Value> {
    let oidc = security.sign_in.rules.oidc();
    let providers: Vec<Value> = oidc
        .providers
        .iter()
        .filter(|_| oidc.enabled)
        .map(|(id, provider)| {
            json!({ "id": id, "display_name": provider.display_name, "type": "oidc" })
        })
        .collect();
    Json(json!({ "providers": providers }))
}

/// `GET /v1/auth/oauth/{provider}`: sends the browser to the provider.
pub(crate) async fn start(
    State(state): App,
    visitor: Visitor,
    ids: Ids,
    query: Query,
) -> ResponseResult {
    let name = ids.text("provider");
    let sign_in = &state.security.sign_in;
    let oidc = sign_in.rules.oidc();
    let config = named(&oidc, name)?;
    let redirect_uri = match &config.redirect_uri {
        Some(configured) => configured.clone(),
        None => format!("{}{}", visitor.origin()?, callback_path(name)),
    };
    let destination = Destination {
        redirect_uri,
        next: local_path(query.get("next").unwrap_or_default()).to_owned(),
        persistent: query.flag("remember_me")?.unwrap_or(true),
    };
    let begun = sign_in.providers.begin(name, config, destination).await;
    let (url, pending) = begun.map_err(|error| {
        tracing::warn!(provider = name, %error, "identity provider cannot be used");
        unreachable_provider()
    })?;
    let cookie = seal(&state, &pending, name)?;
    let max_age = u64::try_from(STATE_AGE.num_seconds()).unwrap_or_default();
    let mut response = redirect(url.as_str())?;
    visitor.set_cookie(&mut response, &StateCookie::new(name, cookie, max_age));
    Ok(response)
}

fn seal(state: &GatewayState, pending: &PendingSignIn, name: &str) -> Result<String, ApiError> {
    let signer = &state.security.authenticator.sessions().signer;
    let sealed = pending.seal(signer, name, state.process.clock.now());
    sealed.map_err(|error| ApiError::Internal(error.to_string()))
}

/// Error: the provider cannot be reached.
pub(super) fn unreachable_provider() -> ApiError {
    ApiError::ProviderFailed("Failed to connect to SSO provider".to_owned())
}

/// Returns the provider with this name.
pub(super) fn named<'a>(
    oidc: &'a OidcConfig,
    name: &str,
) -> Result<&'a OidcProviderConfig, ApiError> {
    if !oidc.enabled {
        let text = "SSO authentication is not enabled";
        return Err(ApiError::NotFound(text.to_owned()));
    }
    let is_id = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if name.is_empty() || !name.bytes().all(is_id) {
        return Err(ApiError::BadRequest("Invalid provider ID".to_owned()));
    }
    oidc.provider(name)
        .ok_or_else(|| ApiError::BadRequest(format!("Unknown SSO provider: {}", truncated(name))))
}

/// Sends a browser to an address.
pub(super) fn redirect(location: &str) -> Result<Response, ApiError> {
    let location = HeaderValue::from_str(location)
        .map_err(|_| ApiError::Internal("an address is not a header value".to_owned()))?;
    let mut response = StatusCode::FOUND.into_response();
    response.headers_mut().insert(header::LOCATION, location);
    Ok(response)
}
