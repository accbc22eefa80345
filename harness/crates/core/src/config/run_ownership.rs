//! `run_ownership`: leases with which nodes claim runs.

use serde::Deserialize;

use super::check::Checker;

/// Upper bound of `stall_seconds`: a day.
const MAX_STALL_SECONDS: u64 = 24 * 60 * 60;

/// Leases on runs.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct RunOwnershipConfig {
    /// Duration of a node's lease, in seconds. After it expires, other nodes take over the node's
    /// runs.
    pub lease_seconds: u64,
    /// Has no effect: a node stops its runs before its lease expires, so no grace period is needed.
    pub grace_seconds: u64,
    /// Has no effect: leases are always renewed if several nodes may share the database.
    pub heartbeat_enabled: bool,
    /// Action on a run whose node failed: resume at its last checkpoint, or end with an error.
    pub recovery: RunRecovery,
    /// Maximum number of node failures and stalled attempts before the run ends.
    pub max_attempts: u32,
    /// Time for which a run may block a thread of its node before its attempt counts as lost, in
    /// seconds; 0 is unlimited.
    pub stall_seconds: u64,
}

/// Action on a run whose node failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RunRecovery {
    /// Resumes the run at its last checkpoint.
    #[default]
    Resume,
    /// Ends the run with an error.
    Fail,
}

impl Default for RunOwnershipConfig {
    fn default() -> Self {
        Self {
            lease_seconds: 10,
            grace_seconds: 10,
            heartbeat_enabled: false,
            recovery: RunRecovery::Resume,
            max_attempts: 3,
            stall_seconds: 120,
        }
    }
}

impl RunOwnershipConfig {
    pub(super) fn check(&self, check: &mut Checker) {
        check.within("lease_seconds", self.lease_seconds, 5..);
        check.within("max_attempts", u64::from(self.max_attempts), 1..);
        check.within("stall_seconds", self.stall_seconds, ..=MAX_STALL_SECONDS);
    }
}
