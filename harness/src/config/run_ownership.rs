//! `run_ownership`: how processes agree on who drives a run.

use serde::Deserialize;

use super::check::Checker;

/// Leases on runs.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct RunOwnershipConfig {
    /// Seconds that a process which says nothing is taken to live; then others take its runs.
    pub lease_seconds: u64,
    /// Without effect: a process stops by itself before its lease lapses, so nobody has to wait for it.
    pub grace_seconds: u64,
    /// Without effect: leases are renewed wherever several processes may share a database.
    pub heartbeat_enabled: bool,
    /// What becomes of a run whose process died: it goes on at its last checkpoint, or ends as an error.
    pub recovery: RunRecovery,
    /// How many processes may die with a run before it ends.
    pub max_attempts: u32,
}

/// What becomes of a run whose process died.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RunRecovery {
    /// It goes on at its last checkpoint.
    #[default]
    Resume,
    /// It ends as an error.
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
        }
    }
}

impl RunOwnershipConfig {
    pub(super) fn check(&self, check: &mut Checker) {
        check.within("lease_seconds", self.lease_seconds, 5..);
        check.within("max_attempts", u64::from(self.max_attempts), 1..);
    }
}
