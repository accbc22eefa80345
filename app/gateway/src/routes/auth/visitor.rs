//! Caller of a sign-in route: its client, its session, and the cookies of the response.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;
use deerflow_accounts::{Client, Operator, SignedIn};
use deerflow_domain::accounts::NewAuditEntry;
use harness::runtime::actor_context::effective_user_id;

use super::state_cookie::StateCookie;
use crate::error::{ApiError, SignInFailure};
use crate::guard::auth::CurrentSession;
use crate::guard::cookies::{CookieScope, PERSISTENT, cookie};
use crate::guard::web_client::WebClient;
use crate::state::GatewayState;

/// Caller of a sign-in route.
#[derive(Debug)]
pub(crate) struct Visitor {
    /// Client, as limits, sessions and the audit log record it.
    pub(super) client: Client,
    /// `true` if the client is certainly on the machine of the server.
    pub(super) is_local: bool,
    /// Headers of the request.
    pub(super) headers: HeaderMap,
    session: Option<CurrentSession>,
    cookies: CookieScope,
    web: WebClient,
    state: Arc<GatewayState>,
}

impl FromRequestParts<Arc<GatewayState>> for Visitor {
    type Rejection = ApiError;

    async fn from_request_parts(
        parts: &mut Parts,
        state: &Arc<GatewayState>,
    ) -> Result<Self, ApiError> {
        let client = parts.extensions.get::<WebClient>().ok_or_else(|| {
            ApiError::Internal("the route was mounted without the request guard".to_owned())
        })?;
        let agent = parts
            .headers
            .get(header::USER_AGENT)
            .and_then(|agent| agent.to_str().ok());
        // A request that came over no connection is one of this process.
        let address = client.address.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
        Ok(Self {
            is_local: client.is_local(),
            client: Client {
                address,
                agent: agent.map(str::to_owned),
            },
            cookies: CookieScope::of(client, state.security.insecure_persistence),
            headers: parts.headers.clone(),
            session: parts.extensions.get::<CurrentSession>().cloned(),
            web: client.clone(),
            state: state.clone(),
        })
    }
}

impl Visitor {
    /// Returns the session of the request.
    ///
    /// # Errors
    /// [`ApiError::Forbidden`] for programs, [`ApiError::SignIn`] for requests without credentials.
    pub(super) fn session(&self) -> Result<&CurrentSession, ApiError> {
        self.session.as_ref().ok_or_else(|| {
            let actor = harness::runtime::actor_context::current();
            let source = actor
                .and_then(|actor| actor.auth_source)
                .unwrap_or_default();
            match source.as_str() {
                "api_key" | "internal" => ApiError::Forbidden(
                    "Only a signed-in person can do this, not a program with a key.".to_owned(),
                ),
                _ => SignInFailure::not_authenticated().into(),
            }
        })
    }

    /// Returns the session of the request, if it has one.
    pub(super) fn session_if_any(&self) -> Option<&CurrentSession> {
        self.session.as_ref()
    }

    /// Returns whether the person wants to stay signed in when the browser closes, from the cookie;
    /// `true` without one.
    pub(super) fn wish(&self) -> bool {
        cookie(&self.headers, PERSISTENT) != Some("0")
    }

    /// Adds the cookies of a started session to a response.
    pub(super) fn signed_in(&self, signed_in: &SignedIn, mut response: Response) -> Response {
        let sessions = self.state.security.authenticator.sessions();
        let session = &signed_in.session;
        let csrf = sessions.signer.csrf_token(&session.token_hash);
        let token = signed_in.token.expose();
        let cookies = self.cookies.sign_in(token, &csrf, session.persistent);
        append(&mut response, cookies);
        response
    }

    /// Returns the origin of the host as the browser sees it.
    ///
    /// # Errors
    /// [`ApiError::BadRequest`] if the request names no host.
    pub(super) fn origin(&self) -> Result<String, ApiError> {
        let host = self.web.forwarded_host.as_ref().or(self.web.host.as_ref());
        let host =
            host.ok_or_else(|| ApiError::BadRequest("The request has no host".to_owned()))?;
        let scheme = if self.web.is_https { "https" } else { "http" };
        Ok(format!("{scheme}://{host}"))
    }

    /// Adds the cookie of a sign-in at a provider to a response.
    pub(super) fn set_cookie(&self, response: &mut Response, cookie: &StateCookie) {
        let cookie = cookie.to_set(self.web.is_https).header();
        append(response, cookie.into_iter().collect());
    }

    /// Adds the deletions of the cookies to a response.
    pub(super) fn signed_out(&self, mut response: Response) -> Response {
        append(&mut response, self.cookies.sign_out());
        response
    }

    /// Returns the caller as actor of an administrative operation.
    pub(crate) fn operator(&self) -> Operator {
        Operator {
            actor: Some(effective_user_id()),
            client: Some(self.client.clone()),
        }
    }

    /// Adds the client to an audit entry.
    pub(crate) fn sign(&self, entry: NewAuditEntry) -> NewAuditEntry {
        let address = self.client.address.to_canonical().to_string();
        entry.from_client(Some(&address), self.client.agent.as_deref())
    }
}

fn append(response: &mut Response, cookies: Vec<HeaderValue>) {
    for cookie in cookies {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
}
