//! `checkpointer`: how long threads stay. Where they are kept is for `database` to say.

use std::time::Duration;

use serde::Deserialize;

use super::check::Checker;

/// Threads' states.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct CheckpointerConfig {
    /// When threads go; never when absent.
    pub ttl: ThreadTtlConfig,
}

/// When threads go.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ThreadTtlConfig {
    /// What becomes of a thread whose time is over: `delete`, or `keep_latest` to leave its newest state.
    pub strategy: String,
    /// Minutes that a new thread stays after its last change, if its maker does not say; for ever when absent.
    pub default_ttl: Option<u64>,
    /// Minutes between two looks for threads whose time is over.
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

/// A hundred years.
const LONGEST_MINUTES: u64 = 52_704_000;

impl ThreadTtlConfig {
    /// [`ThreadTtlConfig::sweep_interval_minutes`] as a duration.
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
            check.within_if_set("default_ttl", self.ttl.default_ttl, 1..=LONGEST_MINUTES);
            check.within(
                "sweep_interval_minutes",
                self.ttl.sweep_interval_minutes,
                1..=1440,
            );
        });
    }
}
