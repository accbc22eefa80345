//! Sessions of people, from the cookie of a request.

use std::sync::Arc;

use axum::http::{HeaderMap, HeaderValue, Method};
use deerflow_accounts::{SessionCache, SessionUse, Signer, TokenError};
use deerflow_domain::accounts::{Account, Role, Session, SessionRefusal};
use harness::clock::Clock;
use harness::runtime::actor_context::ActorContext;

use super::admin::ADMIN;
use crate::error::{ApiError, SignInFailure};
use crate::guard::cookies::{CSRF, CookieScope, PERSISTENT, SESSION, cookie};
use crate::guard::csrf;

/// Length of a token, in characters.
const TOKEN_LENGTH: usize = 43;

/// Checks sessions and the CSRF tokens that belong to them.
#[derive(Debug, Clone)]
pub struct Sessions {
    /// Sessions that this node remembers.
    pub cache: Arc<SessionCache>,
    /// Signer of CSRF tokens.
    pub signer: Signer,
    /// Clock.
    pub clock: Arc<dyn Clock>,
}

/// Session that a request acts by.
#[derive(Debug, Clone)]
pub(crate) struct CurrentSession {
    found: Arc<(Session, Account)>,
    token: String,
    /// Cookies to send again, because the session was extended.
    renewal: Option<Renewal>,
}

/// Values of the cookies of an extended session.
#[derive(Debug, Clone)]
struct Renewal {
    csrf: String,
    persistent: bool,
}

impl CurrentSession {
    /// Session.
    pub(crate) fn session(&self) -> &Session {
        &self.found.0
    }

    /// Account of the session.
    pub(crate) fn account(&self) -> &Account {
        &self.found.1
    }

    /// Token of the session.
    pub(crate) fn token(&self) -> &str {
        &self.token
    }

    /// Returns the actor of the session.
    pub(crate) fn actor(&self) -> ActorContext {
        let account = self.account();
        let is_admin = account.role == Role::Admin;
        ActorContext {
            auth_source: Some("session".to_owned()),
            scopes: is_admin.then(|| ADMIN.to_owned()).into_iter().collect(),
            ..ActorContext::user(&account.id)
        }
    }

    /// Returns the cookies to send with the response, because the browser would forget the session
    /// before its end.
    pub(crate) fn renewed_cookies(&self, scope: CookieScope) -> Vec<HeaderValue> {
        self.renewal.as_ref().map_or_else(Vec::new, |renewal| {
            scope.sign_in(&self.token, &renewal.csrf, renewal.persistent)
        })
    }
}

impl Sessions {
    /// Returns the session of a cookie; `None` if there is no cookie.
    ///
    /// # Errors
    /// [`ApiError::SignIn`] if the session is not valid.
    pub(crate) async fn find(
        &self,
        headers: &HeaderMap,
    ) -> Result<Option<CurrentSession>, ApiError> {
        let Some(token) = cookie(headers, SESSION).filter(|token| !token.is_empty()) else {
            return Ok(None);
        };
        if !is_token(token) {
            return Err(SignInFailure::invalid_token("Token error: malformed").into());
        }
        // A request of the web UI's own server carries the session cookie only, and is no use by a
        // person.
        let renewal = cookie(headers, CSRF).zip(cookie(headers, PERSISTENT));
        let usage = match renewal {
            Some(_) => SessionUse::Extends,
            None => SessionUse::Reads,
        };
        let found = self.cache.authenticate(token, usage).await;
        let found = found.map_err(refusal)?;
        let renewal = renewal
            .filter(|_| found.0.needs_extension(self.clock.now()))
            .map(|(csrf, persistent)| Renewal {
                csrf: csrf.to_owned(),
                persistent: persistent == "1",
            });
        Ok(Some(CurrentSession {
            found,
            token: token.to_owned(),
            renewal,
        }))
    }

    /// Requires the CSRF token of the session of an unsafe request.
    pub(crate) fn check_csrf(
        &self,
        method: &Method,
        headers: &HeaderMap,
        session: &CurrentSession,
    ) -> Result<(), ApiError> {
        let hash = &session.session().token_hash;
        csrf::check(method, headers, |token| {
            self.signer.is_csrf_token_of(token, hash)
        })
    }

    /// `true` if the session of a token has ended. A failure of the store is no end.
    pub(crate) async fn has_ended(&self, token: &str) -> bool {
        matches!(
            self.cache.authenticate(token, SessionUse::Reads).await,
            Err(TokenError::Unknown | TokenError::Refused(_))
        )
    }
}

fn is_token(text: &str) -> bool {
    text.len() == TOKEN_LENGTH
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
}

fn refusal(error: TokenError) -> ApiError {
    match error {
        TokenError::Unknown => SignInFailure::invalid_token("Token revoked or unknown").into(),
        TokenError::Refused(SessionRefusal::Ended) => SignInFailure::expired().into(),
        TokenError::Refused(SessionRefusal::AccountDisabled) => {
            SignInFailure::invalid_token("Token revoked (account disabled)").into()
        }
        TokenError::Store(error) => error.into(),
    }
}
