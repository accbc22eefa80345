//! `run_ownership`: how processes agree on who drives a run.

use serde::Deserialize;

use super::check::Checker;

/// Leases on runs.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct RunOwnershipConfig {
    /// Seconds a lease lasts without renewal.
    pub lease_seconds: u64,
    /// Seconds after a lapsed lease before another process takes the run.
    pub grace_seconds: u64,
    /// Renew leases and take over lapsed runs.
    pub heartbeat_enabled: bool,
}

impl Default for RunOwnershipConfig {
    fn default() -> Self {
        Self { lease_seconds: 30, grace_seconds: 10, heartbeat_enabled: false }
    }
}

impl RunOwnershipConfig {
    pub(super) fn check(&self, check: &mut Checker) {
        check.within("lease_seconds", self.lease_seconds, 5..);
    }
}
