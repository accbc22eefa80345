//! Authentication: the actor is the person of the session, the owner of the API key or of the
//! internal token, or the default user while no credentials are required.

mod admin;
mod internal;
mod keys;
mod presence;
mod session;

use std::net::IpAddr;
use std::sync::Arc;

use axum::http::request::Parts;
use deerflow_domain::api_keys::ApiKeyStore;
use harness::clock::Clock;
use harness::runtime::actor_context::{ActorContext, DEFAULT_USER_ID};
use harness::runtime::runs::store::StoreError;
use secrecy::SecretString;

use self::internal::{Internal, internal_actor};
use self::keys::{Keys, is_langsmith_key, presented_key};
use crate::error::ApiError;
use crate::guard::cookies::{SESSION, cookie};
use crate::guard::csrf;
use crate::guard::paths::PathClass;

pub use self::admin::ADMIN;
pub(crate) use self::admin::{is_admin, is_authentication_enabled, require_admin};
pub use self::presence::AccountPresence;
pub(crate) use self::session::CurrentSession;
pub use self::session::Sessions;

/// Requirement of credentials.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyRule {
    /// Authentication is disabled: a request without a valid session acts as the default user, and
    /// keys are ignored.
    Off,
    /// While there are no accounts, a request without credentials acts as the default user; a key
    /// that is sent must be valid.
    Optional,
    /// Every request needs a session or a key, except probes, public paths and sign-in.
    Required,
}

/// Actor of a request, and what it is based on.
#[derive(Debug, Clone)]
pub(crate) enum Access {
    /// The default user, because the request needs no credentials.
    Open(ActorContext),
    /// No user: the path is public, and the installation is not open otherwise.
    Public(ActorContext),
    /// The owner of a key, or of an internal token.
    Program(ActorContext),
    /// The person of a session.
    Person(CurrentSession),
}

/// Stores and settings of authentication.
#[derive(Debug)]
pub struct AuthenticatorParts {
    /// Requirement of credentials.
    pub rule: KeyRule,
    /// API keys.
    pub keys: Arc<dyn ApiKeyStore>,
    /// Sessions.
    pub sessions: Sessions,
    /// Presence of accounts.
    pub presence: Arc<AccountPresence>,
    /// Token of internal callers; `None` if there are none.
    pub internal_token: Option<SecretString>,
    /// Clock.
    pub clock: Arc<dyn Clock>,
}

/// Authentication of requests. Clones share its state.
#[derive(Debug, Clone)]
pub struct Authenticator(Arc<Rules>);

#[derive(Debug)]
struct Rules {
    rule: KeyRule,
    keys: Keys,
    sessions: Sessions,
    presence: Arc<AccountPresence>,
    internal_token: Option<SecretString>,
}

impl Authenticator {
    /// Authenticates by these parts.
    pub fn new(parts: AuthenticatorParts) -> Self {
        Self(Arc::new(Rules {
            rule: parts.rule,
            keys: Keys::new(parts.keys, parts.clock),
            sessions: parts.sessions,
            presence: parts.presence,
            internal_token: parts.internal_token,
        }))
    }

    /// `true` if authentication is disabled.
    pub(crate) fn is_disabled(&self) -> bool {
        self.0.rule == KeyRule::Off
    }

    /// Sessions.
    pub(crate) fn sessions(&self) -> &Sessions {
        &self.0.sessions
    }

    /// Returns the actor of a request.
    pub(crate) async fn access(
        &self,
        class: PathClass,
        request: &Parts,
        address: Option<IpAddr>,
    ) -> Result<Access, ApiError> {
        let rules = &*self.0;
        match internal_actor(&request.headers, rules.internal_token.as_ref()) {
            Internal::Actor(actor) => return Ok(Access::Program(actor)),
            Internal::Wrong if class == PathClass::Protected => return Err(ApiError::InvalidKey),
            Internal::Wrong | Internal::Absent => {}
        }
        match (rules.rule, class) {
            (KeyRule::Required, PathClass::Probe) => Ok(Access::Public(default_actor("probe"))),
            (KeyRule::Off | KeyRule::Optional, PathClass::Probe) => {
                Ok(Access::Open(default_actor("probe")))
            }
            (KeyRule::Off, _) => rules.access_if_disabled(class, request).await,
            (KeyRule::Optional | KeyRule::Required, _) => {
                rules.access_by_credentials(class, request, address).await
            }
        }
    }
}

impl Rules {
    /// Returns the person of a valid session, else the default user.
    async fn access_if_disabled(
        &self,
        class: PathClass,
        request: &Parts,
    ) -> Result<Access, ApiError> {
        if class == PathClass::Protected
            && let Ok(Some(session)) = self.sessions.find(&request.headers).await
        {
            self.sessions
                .check_csrf(&request.method, &request.headers, &session)?;
            return Ok(Access::Person(session));
        }
        Ok(Access::Open(default_actor(admin::DISABLED)))
    }

    async fn access_by_credentials(
        &self,
        class: PathClass,
        request: &Parts,
        address: Option<IpAddr>,
    ) -> Result<Access, ApiError> {
        let key = presented_key(&request.headers)
            .filter(|key| self.rule == KeyRule::Required || !is_langsmith_key(key));
        if let Some(key) = key
            && class != PathClass::SignIn
        {
            return Ok(Access::Program(self.keys.actor(key, address).await?));
        }
        let has_session = cookie(&request.headers, SESSION).is_some_and(|token| !token.is_empty());
        if self.rule == KeyRule::Optional && !self.has_accounts(has_session).await? {
            return Ok(Access::Open(default_actor("loopback")));
        }
        if class != PathClass::Protected {
            return Ok(Access::Public(public_actor()));
        }
        if has_session {
            csrf::submitted(&request.method, &request.headers)?;
        }
        let session = self.sessions.find(&request.headers).await?;
        let session = session.ok_or(ApiError::MissingKey)?;
        self.sessions
            .check_csrf(&request.method, &request.headers, &session)?;
        Ok(Access::Person(session))
    }

    /// Returns whether the installation has accounts. A session may be one of the first account,
    /// which another node has just created, so its request does not rely on an earlier read.
    async fn has_accounts(&self, has_session: bool) -> Result<bool, StoreError> {
        if has_session {
            self.presence.any_now().await
        } else {
            self.presence.any().await
        }
    }
}

/// Actor while no credentials are required: an administrator.
fn default_actor(source: &str) -> ActorContext {
    ActorContext {
        auth_source: Some(source.to_owned()),
        scopes: vec![ADMIN.to_owned()],
        ..ActorContext::user(DEFAULT_USER_ID)
    }
}

/// Actor of public paths, whose handlers serve no data of users.
fn public_actor() -> ActorContext {
    ActorContext {
        auth_source: Some("public".to_owned()),
        ..ActorContext::user(DEFAULT_USER_ID)
    }
}

#[cfg(test)]
pub(crate) mod fixture;
#[cfg(test)]
#[path = "session_tests.rs"]
mod session_tests;
#[cfg(test)]
#[path = "auth_tests.rs"]
mod tests;
