//! API keys of programs, and the limit of failed attempts with them.

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
use harness::runtime::actor_context::ActorContext;
use tokio::time::Instant;

use super::admin::ADMIN;
use crate::error::ApiError;

/// Burst of failed attempts; after it, one attempt per refill period.
const BURST: NonZeroU32 = NonZeroU32::new(20).expect("not zero");
pub(super) const REFILL_PERIOD: Duration = Duration::from_secs(3);
/// Above this number of tracked addresses and keys, those without recent failures are evicted.
const MAX_TRACKED: usize = 10_000;

/// Checks API keys.
pub(super) struct Keys {
    store: Arc<dyn ApiKeyStore>,
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

impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Keys")
            .field("store", &self.store)
            .finish_non_exhaustive()
    }
}

impl Keys {
    pub(super) fn new(store: Arc<dyn ApiKeyStore>, clock: Arc<dyn Clock>) -> Self {
        let quota = Quota::with_period(REFILL_PERIOD)
            .unwrap_or(Quota::per_minute(BURST))
            .allow_burst(BURST);
        let failures = RateLimiter::new(
            quota,
            DefaultKeyedStateStore::default(),
            MonotonicClock(Instant::now()),
        );
        Self {
            store,
            clock,
            failures,
        }
    }

    /// Returns the actor of a key. An error does not reveal why a key is invalid.
    pub(super) async fn actor(
        &self,
        presented_key: &str,
        address: Option<IpAddr>,
    ) -> Result<ActorContext, ApiError> {
        if let Some(key) = find_valid_key(&self.store, presented_key, self.clock.now()).await? {
            let scopes = key.is_admin.then(|| ADMIN.to_owned()).into_iter().collect();
            return Ok(ActorContext {
                auth_source: Some("api_key".to_owned()),
                scopes,
                ..ActorContext::user(key.user_id)
            });
        }
        Err(self.reject(presented_key, address))
    }

    /// Counts a failed attempt. Limits never apply to a valid key, so an attacker cannot lock its
    /// owner out.
    fn reject(&self, presented_key: &str, address: Option<IpAddr>) -> ApiError {
        if self.failures.len() > MAX_TRACKED {
            self.failures.retain_recent();
        }
        let address = address.map_or_else(
            || "address".to_owned(),
            |address| format!("address {address}"),
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

/// `true` for a LangSmith key: the platform's clients send the one in their environment to every
/// server.
pub(super) fn is_langsmith_key(presented_key: &str) -> bool {
    ["lsv2_", "ls__"]
        .iter()
        .any(|prefix| presented_key.starts_with(prefix))
}

/// Returns the key in the headers that the platform's clients use. A value that is not text becomes
/// an invalid key.
pub(super) fn presented_key(headers: &HeaderMap) -> Option<&str> {
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
