//! Return of a browser from an identity provider.

use axum::extract::State;
use axum::response::Response;
use deerflow_accounts::oidc::{Callback, PendingSignIn, ProviderError};
use deerflow_accounts::{ProviderAttempt, ProviderRefusal, SignedIn};
use deerflow_domain::accounts::AuditOutcome;
use harness::config::{OidcConfig, OidcProviderConfig};
use reqwest::Url;

use super::failures::refusal;
use super::providers::{named, redirect, unreachable_provider};
use super::state_cookie::{StateCookie, state_cookie_name};
use super::visitor::Visitor;
use crate::error::ApiError;
use crate::extract::{Ids, Query};
use crate::guard::cookies::all;
use crate::routes::{App, ResponseResult};
use crate::state::{GatewayState, SignInServices};

/// Error code of a provider for a person who declined.
const DECLINED: &str = "access_denied";

/// End of a sign-in that the web UI explains to the person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Failure {
    Cancelled,
    Failed,
    NotAllowed,
    AccountExists,
}

impl Failure {
    /// Returns the code that the web UI knows.
    fn code(self) -> &'static str {
        match self {
            Self::Cancelled => "sso_cancelled",
            Self::Failed => "sso_failed",
            Self::NotAllowed => "sso_not_allowed",
            Self::AccountExists => "sso_account_exists",
        }
    }

    fn outcome(self) -> AuditOutcome {
        match self {
            Self::NotAllowed | Self::AccountExists => AuditOutcome::Refused,
            Self::Cancelled | Self::Failed => AuditOutcome::Failure,
        }
    }
}

/// Result of a callback whose state is that of a sign-in of this browser.
enum End {
    SignedIn(Box<SignedIn>),
    Failed(Failure),
}

/// `GET /v1/auth/callback/{provider}`: completes a sign-in at a provider.
pub(crate) async fn callback(
    State(state): App,
    visitor: Visitor,
    ids: Ids,
    query: Query,
) -> ResponseResult {
    let name = ids.text("provider");
    let oidc = state.security.sign_in.rules.oidc();
    let config = match (named(&oidc, name), query.get("error")) {
        (Ok(config), _) => config,
        // The provider was removed from the configuration meanwhile.
        (Err(_), Some(_)) => return failed(&oidc, Failure::Failed),
        (Err(error), None) => return Err(error),
    };
    let pending = match (pending(&state, &visitor, name, &query), query.get("error")) {
        (Ok(pending), _) => pending,
        (Err(_), Some(error)) => return failed(&oidc, of_error(error)),
        (Err(error), None) => return Err(error),
    };
    let sign_in = &state.security.sign_in;
    let client = &visitor.client;
    let of_store = |error| refusal(error, "");
    let attempt = sign_in.service.begin_attempt(client).await;
    let attempt = attempt.map_err(of_store)?;
    if !sign_in
        .service
        .use_state(&pending)
        .await
        .map_err(of_store)?
    {
        fail(sign_in, &attempt, name, Failure::Failed, &visitor).await?;
        let text = "OIDC state mismatch: this sign-in was completed before. Sign in again.";
        return Err(ApiError::Forbidden(text.to_owned()));
    }
    let end = match query.get("error") {
        Some(error) => Ok(End::Failed(of_error(error))),
        None => complete(sign_in, name, config, &pending, &query, &visitor).await,
    };
    let mut response = match end {
        Ok(End::SignedIn(signed_in)) => {
            sign_in
                .service
                .end_attempt(&attempt)
                .await
                .map_err(of_store)?;
            sign_in.presence.created();
            let page = page(&oidc, "/auth/callback", ("next", pending.next()))?;
            visitor.signed_in(&signed_in, redirect(&page)?)
        }
        Ok(End::Failed(failure)) => {
            fail(sign_in, &attempt, name, failure, &visitor).await?;
            failed(&oidc, failure)?
        }
        Err(error) => {
            fail(sign_in, &attempt, name, Failure::Failed, &visitor).await?;
            return Err(error);
        }
    };
    visitor.set_cookie(&mut response, &StateCookie::new(name, String::new(), 0));
    Ok(response)
}

/// Returns the sign-in that this browser began and the provider names.
fn pending(
    state: &GatewayState,
    visitor: &Visitor,
    name: &str,
    query: &Query,
) -> Result<PendingSignIn, ApiError> {
    let filled = |name| query.get(name).filter(|text| !text.is_empty());
    let (Some(stated), true) = (
        filled("state"),
        filled("code").is_some() || filled("error").is_some(),
    ) else {
        let text = "Missing code or state parameter";
        return Err(ApiError::BadRequest(text.to_owned()));
    };
    let signer = &state.security.authenticator.sessions().signer;
    let now = state.process.clock.now();
    let cookie = state_cookie_name(name);
    // A page of a sibling domain may have set another cookie of the same name.
    let mut found: Vec<PendingSignIn> = all(&visitor.headers, &cookie)
        .filter_map(|text| PendingSignIn::open(signer, name, text, now).ok())
        .collect();
    if found.is_empty() {
        let text = "Missing or expired OIDC state cookie";
        return Err(ApiError::Forbidden(text.to_owned()));
    }
    let own = found.iter().position(|pending| pending.has_state(stated));
    match own {
        Some(position) => Ok(found.swap_remove(position)),
        None => Err(ApiError::Forbidden("OIDC state mismatch".to_owned())),
    }
}

/// Exchanges the code, and signs the person in by the rules of the provider.
async fn complete(
    sign_in: &SignInServices,
    name: &str,
    config: &OidcProviderConfig,
    pending: &PendingSignIn,
    query: &Query,
    visitor: &Visitor,
) -> Result<End, ApiError> {
    let callback = Callback {
        code: query.get("code").unwrap_or_default(),
        issuer: query.get("iss"),
    };
    let person = sign_in.providers.exchange(name, config, pending, callback);
    let person = match person.await {
        Ok(person) => person,
        Err(error) => {
            tracing::warn!(provider = name, %error, "sign-in at the identity provider failed");
            return match error {
                ProviderError::Discovery(_) => Err(unreachable_provider()),
                _ => Ok(End::Failed(Failure::Failed)),
            };
        }
    };
    let entered = sign_in.service.enter_from_provider(
        name,
        config,
        &person,
        pending.is_persistent(),
        &visitor.client,
    );
    Ok(match entered.await {
        Ok(signed_in) => End::SignedIn(Box::new(signed_in)),
        Err(ProviderRefusal::SignIn(error)) => return Err(refusal(error, "")),
        Err(refused) => {
            tracing::info!(provider = name, reason = %refused, "sign-in at the identity provider was refused");
            End::Failed(match refused {
                ProviderRefusal::NotAllowed(_) => Failure::NotAllowed,
                ProviderRefusal::AccountExists => Failure::AccountExists,
                ProviderRefusal::Identity | ProviderRefusal::SignIn(_) => Failure::Failed,
            })
        }
    })
}

/// Records a failed attempt.
async fn fail(
    sign_in: &SignInServices,
    attempt: &ProviderAttempt,
    name: &str,
    failure: Failure,
    visitor: &Visitor,
) -> Result<(), ApiError> {
    let (service, client) = (&sign_in.service, &visitor.client);
    let failed = service.fail_attempt(attempt, name, failure.outcome(), client);
    failed.await.map_err(|error| refusal(error, ""))
}

/// Returns the meaning of a provider's error code.
fn of_error(code: &str) -> Failure {
    if code == DECLINED {
        Failure::Cancelled
    } else {
        Failure::Failed
    }
}

/// Sends the browser to the sign-in page, which explains the failure.
fn failed(oidc: &OidcConfig, failure: Failure) -> Result<Response, ApiError> {
    redirect(&page(oidc, "/login", ("error", failure.code()))?)
}

/// Returns the address of a page of the web UI with one parameter.
fn page(oidc: &OidcConfig, path: &str, (name, value): (&str, &str)) -> Result<String, ApiError> {
    let of = |error: &dyn std::fmt::Display| ApiError::Internal(error.to_string());
    let mut url = Url::parse("page://page").map_err(|error| of(&error))?;
    url.query_pairs_mut().append_pair(name, value);
    let base = oidc.frontend_base_url.as_deref().unwrap_or_default();
    let query = url.query().unwrap_or_default();
    Ok(format!("{}{path}?{query}", base.trim_end_matches('/')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_is_on_this_host_or_on_the_configured_one() {
        let mut oidc = OidcConfig::default();
        let next = ("next", "/a?b=c&d=e#f");
        let query = "next=%2Fa%3Fb%3Dc%26d%3De%23f";
        let path = "/auth/callback";
        assert_eq!(page(&oidc, path, next).unwrap(), format!("{path}?{query}"));
        oidc.frontend_base_url = Some("https://ui.test/".to_owned());
        let expected = format!("https://ui.test{path}?{query}");
        assert_eq!(page(&oidc, path, next).unwrap(), expected);
    }
}
