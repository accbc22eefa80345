//! Authentication: the actor is the owner of the request's API key, or the default user where no
//! key is required.

mod admin;
mod internal;
mod keys;

use std::net::IpAddr;
use std::sync::Arc;

use axum::http::HeaderMap;
use deerflow_domain::api_keys::ApiKeyStore;
use harness::clock::Clock;
use harness::runtime::actor_context::{ActorContext, DEFAULT_USER_ID};
use secrecy::SecretString;

use self::internal::{Internal, internal_actor};
use self::keys::{Keys, is_langsmith_key, presented_key};
use crate::error::ApiError;
use crate::guard::paths::PathClass;

pub use self::admin::ADMIN;
pub(crate) use self::admin::{is_admin, require_admin};

/// Requirement of API keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyRule {
    /// Keys are ignored: every request acts as the default user.
    Off,
    /// A request without a key acts as the default user; a key that is sent must be valid.
    Optional,
    /// Every request needs a valid key, except probes and public paths.
    Required,
}

/// Actor of a request, and what it is based on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Access {
    /// The default user, because the request needs no credentials.
    Open(ActorContext),
    /// The owner of a key, or of an internal token.
    Program(ActorContext),
}

/// Authentication of requests. Clones share its state.
#[derive(Debug, Clone)]
pub struct Authenticator(Arc<Rules>);

#[derive(Debug)]
struct Rules {
    rule: KeyRule,
    keys: Keys,
    internal_token: Option<SecretString>,
}

impl Authenticator {
    /// Authenticates by the keys of `keys`.
    pub fn new(rule: KeyRule, keys: Arc<dyn ApiKeyStore>, clock: Arc<dyn Clock>) -> Self {
        Self(Arc::new(Rules {
            rule,
            keys: Keys::new(keys, clock),
            internal_token: None,
        }))
    }

    /// Returns the actor of a request.
    pub(crate) async fn access(
        &self,
        class: PathClass,
        headers: &HeaderMap,
        address: Option<IpAddr>,
    ) -> Result<Access, ApiError> {
        let rules = &*self.0;
        match internal_actor(headers, rules.internal_token.as_ref()) {
            Internal::Actor(actor) => return Ok(Access::Program(actor)),
            Internal::Wrong if class == PathClass::Protected => return Err(ApiError::InvalidKey),
            Internal::Wrong | Internal::Absent => {}
        }
        if rules.rule == KeyRule::Off {
            return Ok(Access::Open(default_actor("disabled")));
        }
        if class == PathClass::Probe {
            return Ok(Access::Open(default_actor("probe")));
        }
        let presented_key = presented_key(headers).filter(|presented_key| {
            rules.rule == KeyRule::Required || !is_langsmith_key(presented_key)
        });
        let Some(presented_key) = presented_key else {
            let is_open = rules.rule == KeyRule::Optional || class != PathClass::Protected;
            return if is_open {
                Ok(Access::Open(default_actor("loopback")))
            } else {
                Err(ApiError::MissingKey)
            };
        };
        let actor = rules.keys.actor(presented_key, address).await?;
        Ok(Access::Program(actor))
    }
}

fn default_actor(source: &str) -> ActorContext {
    ActorContext {
        auth_source: Some(source.to_owned()),
        scopes: vec![ADMIN.to_owned()],
        ..ActorContext::user(DEFAULT_USER_ID)
    }
}

#[cfg(test)]
#[path = "auth_tests.rs"]
mod tests;
