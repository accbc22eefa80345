//! `checkpointer`: retention of threads. The storage of threads is configured under `database`.

use std::time::Duration;

use serde::Deserialize;

use super::check::Checker;

/// Retention of threads.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct CheckpointerConfig {
    /// Expiry of threads.
    pub ttl: ThreadTtlConfig,
}

/// Expiry of threads.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ThreadTtlConfig {
    /// Action on an expired thread: `delete`, or `keep_latest` to keep only its newest state.
    pub strategy: String,
    /// Default lifetime of a new thread after its last change, in minutes; unlimited if absent.
    pub default_ttl: Option<u64>,
    /// Interval between sweeps for expired threads, in minutes.
    pub sweep_interval_minutes: u64,
}

impl Default for ThreadTtlConfig {
    fn default() -> Self {
        Self {
            strategy: "delete".to_owned(),
            default_ttl: None,
            sweep_interval_minutes: 5,
        }
    }
}

/// Maximum lifetime: one hundred years, in minutes.
const MAX_TTL_MINUTES: u64 = 52_704_000;

impl ThreadTtlConfig {
    /// Returns [`ThreadTtlConfig::sweep_interval_minutes`] as a duration.
    pub fn sweep_interval(&self) -> Duration {
        Duration::from_secs(self.sweep_interval_minutes.saturating_mul(60))
    }
}

impl CheckpointerConfig {
    pub(super) fn check(&self, check: &mut Checker) {
        check.under("ttl", |check| {
            if !["delete", "keep_latest"].contains(&self.ttl.strategy.as_str()) {
                check.refuse("strategy", &self.ttl.strategy, "delete or keep_latest");
            }
            check.within_if_set("default_ttl", self.ttl.default_ttl, 1..=MAX_TTL_MINUTES);
            check.within(
                "sweep_interval_minutes",
                self.ttl.sweep_interval_minutes,
                1..=1440,
            );
        });
    }
}
