//! Authentication: the actor is the owner of the request's API key, or the default user where no
//! key is required.

use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use axum::http::{HeaderMap, header};
use deerflow_domain::api_keys::{ApiKeyStore, PREFIX, find_valid_key};
use governor::clock::Clock as _;
use governor::middleware::NoOpMiddleware;
use governor::state::keyed::DefaultKeyedStateStore;
use governor::{Quota, RateLimiter};
use harness::clock::Clock;
use harness::runtime::actor_context::{ActorContext, DEFAULT_USER_ID, current};
use tokio::time::Instant;

use crate::error::ApiError;

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

/// Scope of administrators.
pub const ADMIN: &str = "admin";

/// Rejects actors that are neither the default user nor have the administrator scope.
pub(crate) fn require_admin(message: &str) -> Result<(), ApiError> {
    if is_admin() {
        Ok(())
    } else {
        Err(ApiError::Forbidden(message.to_owned()))
    }
}

/// `true` if the actor is an administrator.
pub(crate) fn is_admin() -> bool {
    current().is_some_and(|actor| {
        actor.user_id == DEFAULT_USER_ID || actor.scopes.iter().any(|scope| scope == ADMIN)
    })
}

/// `false` if the server does not authenticate: every request acts as the default user.
pub(crate) fn is_authentication_enabled() -> bool {
    current().is_none_or(|actor| actor.auth_source.as_deref() != Some(DISABLED))
}

/// Source of the default actor of a server that does not authenticate.
const DISABLED: &str = "disabled";

/// Remote address of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer(pub IpAddr);

/// Paths that never need a key.
const PUBLIC_PATHS: [&str; 7] = [
    "/",
    "/ok",
    "/health",
    "/ready",
    "/info",
    "/api/v1/auth/setup-status",
    "/api/v1/auth/providers",
];
/// Paths that must answer while stores are down: no key is looked up for them.
const PROBE_PATHS: [&str; 2] = ["/health", "/ready"];
/// Burst of failed attempts; after it, one attempt per refill period.
const BURST: NonZeroU32 = NonZeroU32::new(20).expect("not zero");
const REFILL_PERIOD: Duration = Duration::from_secs(3);
/// Above this number of tracked addresses and keys, those without recent failures are evicted.
const MAX_TRACKED: usize = 10_000;

/// Authentication of requests. Clones share its state.
#[derive(Debug, Clone)]
pub struct Authenticator(Arc<Rules>);

struct Rules {
    rule: KeyRule,
    keys: Arc<dyn ApiKeyStore>,
    clock: Arc<dyn Clock>,
    /// Keyed by address and by key; a prefix separates the two.
    failures: RateLimiter<
        String,
        DefaultKeyedStateStore<String>,
        MonotonicClock,
        NoOpMiddleware<Duration>,
    >,
}

/// Time since a start, by tokio's clock: it is monotonic, and tests can pause it.
#[derive(Debug, Clone, Copy)]
struct MonotonicClock(Instant);

impl governor::clock::Clock for MonotonicClock {
    type Instant = Duration;

    fn now(&self) -> Duration {
        self.0.elapsed()
    }
}

impl std::fmt::Debug for Rules {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rules")
            .field("rule", &self.rule)
            .field("keys", &self.keys)
            .finish_non_exhaustive()
    }
}

impl Authenticator {
    /// Authenticates by the keys of `keys`.
    pub fn new(rule: KeyRule, keys: Arc<dyn ApiKeyStore>, clock: Arc<dyn Clock>) -> Self {
        let quota = Quota::with_period(REFILL_PERIOD)
            .unwrap_or(Quota::per_minute(BURST))
            .allow_burst(BURST);
        let failures = RateLimiter::new(
            quota,
            DefaultKeyedStateStore::default(),
            MonotonicClock(Instant::now()),
        );
        Self(Arc::new(Rules {
            rule,
            keys,
            clock,
            failures,
        }))
    }

    /// Returns the actor of a request. An error does not reveal why a key is invalid.
    pub(crate) async fn actor(
        &self,
        path: &str,
        headers: &HeaderMap,
        peer: Option<Peer>,
    ) -> Result<ActorContext, ApiError> {
        let rules = &*self.0;
        if rules.rule == KeyRule::Off {
            return Ok(default_actor(DISABLED));
        }
        if PROBE_PATHS.contains(&path) {
            return Ok(default_actor("probe"));
        }
        let presented_key = presented_key(headers).filter(|presented_key| {
            rules.rule == KeyRule::Required || !is_langsmith_key(presented_key)
        });
        let Some(presented_key) = presented_key else {
            let is_open = rules.rule == KeyRule::Optional || PUBLIC_PATHS.contains(&path);
            return if is_open {
                Ok(default_actor("loopback"))
            } else {
                Err(ApiError::MissingKey)
            };
        };
        if let Some(key) = find_valid_key(&rules.keys, presented_key, rules.clock.now()).await? {
            let scopes = key.is_admin.then(|| ADMIN.to_owned()).into_iter().collect();
            return Ok(ActorContext {
                auth_source: Some("api_key".to_owned()),
                scopes,
                ..ActorContext::user(key.user_id)
            });
        }
        Err(rules.reject(presented_key, peer))
    }
}

impl Rules {
    /// Counts a failed attempt. Limits never apply to a valid key, so an attacker cannot lock its
    /// owner out.
    fn reject(&self, presented_key: &str, peer: Option<Peer>) -> ApiError {
        if self.failures.len() > MAX_TRACKED {
            self.failures.retain_recent();
        }
        let address = peer.map_or_else(
            || "address".to_owned(),
            |Peer(address)| format!("address {address}"),
        );
        let key = format!(
            "key {}",
            presented_key
                .chars()
                .take(PREFIX.len() + 16)
                .collect::<String>()
        );
        let wait = [address, key].into_iter().filter_map(|subject| {
            let refused = self.failures.check_key(&subject).err()?;
            Some(refused.wait_time_from(self.failures.clock().now()))
        });
        match wait.max() {
            Some(wait) => ApiError::TooManyFailures {
                retry_after_secs: wait.as_secs().max(1),
            },
            None => ApiError::InvalidKey,
        }
    }
}

fn default_actor(source: &str) -> ActorContext {
    ActorContext {
        auth_source: Some(source.to_owned()),
        ..ActorContext::user(DEFAULT_USER_ID)
    }
}

/// `true` for a LangSmith key: the platform's clients send the one in their environment to every
/// server.
fn is_langsmith_key(presented_key: &str) -> bool {
    ["lsv2_", "ls__"]
        .iter()
        .any(|prefix| presented_key.starts_with(prefix))
}

/// Returns the key in the headers that the platform's clients use. A value that is not text becomes
/// an invalid key.
fn presented_key(headers: &HeaderMap) -> Option<&str> {
    if let Some(key) = headers.get("x-api-key") {
        return Some(key.to_str().unwrap_or("?"));
    }
    let value = headers.get(header::AUTHORIZATION)?.to_str().unwrap_or("?");
    let (scheme, key) = value.split_once(' ').unwrap_or(("", value));
    Some(if scheme.eq_ignore_ascii_case("bearer") {
        key.trim()
    } else {
        "?"
    })
}

#[cfg(test)]
#[path = "auth_tests.rs"]
mod tests;
