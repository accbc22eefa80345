//! Who acts: the owner of the key that a request carries, or the default user where no key is needed.

use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use axum::http::{HeaderMap, header};
use deerflow_domain::api_keys::{ApiKeyStore, PREFIX, recognize};
use governor::clock::Clock as _;
use governor::middleware::NoOpMiddleware;
use governor::state::keyed::DefaultKeyedStateStore;
use governor::{Quota, RateLimiter};
use harness::clock::Clock;
use harness::runtime::actor_context::{ActorContext, DEFAULT_USER_ID, current};
use tokio::time::Instant;

use crate::error::ApiError;

/// Whether requests need a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyRule {
    /// Nobody looks at keys: everybody is the default user.
    Off,
    /// Without a key one is the default user; a key that is sent must be valid.
    Optional,
    /// Nothing without a valid key, but what probes ask for.
    Required,
}

/// The scope of those who manage the installation.
pub const ADMIN: &str = "admin";

/// Refuses everybody who does not manage the installation: that is the default user, and whoever has the scope for it.
pub(crate) fn require_admin(refusal: &str) -> Result<(), ApiError> {
    if is_admin() {
        Ok(())
    } else {
        Err(ApiError::Forbidden(refusal.to_owned()))
    }
}

/// Whether who acts manages the installation.
pub(crate) fn is_admin() -> bool {
    current().is_some_and(|actor| {
        actor.user_id == DEFAULT_USER_ID || actor.scopes.iter().any(|scope| scope == ADMIN)
    })
}

/// The address of the other end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer(pub IpAddr);

/// What needs no key anywhere.
const OPEN: [&str; 7] = [
    "/",
    "/ok",
    "/health",
    "/ready",
    "/info",
    "/api/v1/auth/setup-status",
    "/api/v1/auth/providers",
];
/// What probes ask for while stores are down: no key is looked up for it.
const PROBED: [&str; 2] = ["/health", "/ready"];
/// Failures at once, and then one in so many seconds.
const BURST: NonZeroU32 = NonZeroU32::new(20).expect("not zero");
const AGAIN_AFTER: Duration = Duration::from_secs(3);
/// Beyond so many addresses or keys those are forgotten that did not fail lately.
const MANY: usize = 10_000;

/// The rules of access. Clones share them.
#[derive(Debug, Clone)]
pub struct Access(Arc<Rules>);

struct Rules {
    rule: KeyRule,
    keys: Arc<dyn ApiKeyStore>,
    clock: Arc<dyn Clock>,
    /// By address and by key, told apart by their first characters.
    failures: RateLimiter<String, DefaultKeyedStateStore<String>, Since, NoOpMiddleware<Duration>>,
}

/// The time since a moment by tokio's clock: it never goes back, and tests pause it.
#[derive(Debug, Clone, Copy)]
struct Since(Instant);

impl governor::clock::Clock for Since {
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

impl Access {
    /// Access by the keys of a store.
    pub fn new(rule: KeyRule, keys: Arc<dyn ApiKeyStore>, clock: Arc<dyn Clock>) -> Self {
        let quota = Quota::with_period(AGAIN_AFTER)
            .unwrap_or(Quota::per_minute(BURST))
            .allow_burst(BURST);
        let failures = RateLimiter::new(
            quota,
            DefaultKeyedStateStore::default(),
            Since(Instant::now()),
        );
        Self(Arc::new(Rules {
            rule,
            keys,
            clock,
            failures,
        }))
    }

    /// The actor of a request. What is wrong with a key is not told.
    pub(crate) async fn actor(
        &self,
        path: &str,
        headers: &HeaderMap,
        peer: Option<Peer>,
    ) -> Result<ActorContext, ApiError> {
        let rules = &*self.0;
        if rules.rule == KeyRule::Off {
            return Ok(anybody("disabled"));
        }
        if PROBED.contains(&path) {
            return Ok(anybody("probe"));
        }
        let sent =
            sent(headers).filter(|sent| rules.rule == KeyRule::Required || !is_langsmiths(sent));
        let Some(sent) = sent else {
            let is_open = rules.rule == KeyRule::Optional || OPEN.contains(&path);
            return if is_open {
                Ok(anybody("loopback"))
            } else {
                Err(ApiError::MissingKey)
            };
        };
        if let Some(key) = recognize(&rules.keys, sent, rules.clock.now()).await? {
            let scopes = key.is_admin.then(|| ADMIN.to_owned()).into_iter().collect();
            return Ok(ActorContext {
                auth_source: Some("api_key".to_owned()),
                scopes,
                ..ActorContext::user(key.user_id)
            });
        }
        Err(rules.failed(sent, peer))
    }
}

impl Rules {
    /// Counts a failure. A valid key always works: nobody can lock its owner out.
    fn failed(&self, sent: &str, peer: Option<Peer>) -> ApiError {
        if self.failures.len() > MANY {
            self.failures.retain_recent();
        }
        let address = peer.map_or_else(
            || "address".to_owned(),
            |Peer(address)| format!("address {address}"),
        );
        let key = format!(
            "key {}",
            sent.chars().take(PREFIX.len() + 16).collect::<String>()
        );
        let wait = [address, key].into_iter().filter_map(|whose| {
            let refused = self.failures.check_key(&whose).err()?;
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

fn anybody(source: &str) -> ActorContext {
    ActorContext {
        auth_source: Some(source.to_owned()),
        ..ActorContext::user(DEFAULT_USER_ID)
    }
}

/// Whether it is a key for LangSmith: the platform's clients send the one that they find in their environment, wherever they call.
fn is_langsmiths(sent: &str) -> bool {
    ["lsv2_", "ls__"]
        .iter()
        .any(|prefix| sent.starts_with(prefix))
}

/// The key in the headers, as clients of the platform send it. One that is not text is a wrong one.
fn sent(headers: &HeaderMap) -> Option<&str> {
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
#[path = "access_tests.rs"]
mod tests;
