//! `retention`: deletion of data that is no longer needed. Data that users can see is kept forever
//! by default.

use std::time::Duration;

use serde::Deserialize;

use super::RunEventsBackend;
use super::check::Checker;

/// Retention of data without another expiry.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct RetentionConfig {
    /// Retention of undelivered webhook calls, in days.
    pub dead_letter_days: u64,
    /// Retention of a run's journal after its end, in days; unlimited if absent. Applies to a
    /// journal in the database only.
    pub run_event_days: Option<u64>,
    /// Number of newest checkpoints that each thread keeps; all if neither this nor
    /// `checkpoint_days` is set.
    pub checkpoints_per_thread: Option<u64>,
    /// Retention of the other checkpoints, in days.
    pub checkpoint_days: Option<u64>,
    /// Retention of the audit log, in days.
    pub audit_days: u64,
    /// Interval between sweeps, in minutes.
    pub sweep_interval_minutes: u64,
}

impl Default for RetentionConfig {
    fn default() -> Self {
        Self {
            dead_letter_days: 14,
            run_event_days: None,
            checkpoints_per_thread: None,
            checkpoint_days: None,
            audit_days: 180,
            sweep_interval_minutes: 10,
        }
    }
}

/// Maximum retention: one hundred years, in days.
const MAX_DAYS: u64 = 36_600;

impl RetentionConfig {
    /// Returns [`RetentionConfig::sweep_interval_minutes`] as a duration.
    pub fn sweep_interval(&self) -> Duration {
        Duration::from_secs(self.sweep_interval_minutes.saturating_mul(60))
    }

    pub(super) fn check(&self, journal: RunEventsBackend, check: &mut Checker) {
        check.within("dead_letter_days", self.dead_letter_days, 1..=MAX_DAYS);
        check.within_if_set("run_event_days", self.run_event_days, 1..=MAX_DAYS);
        if let Some(days) = self
            .run_event_days
            .filter(|_| journal != RunEventsBackend::Db)
        {
            check.refuse(
                "run_event_days",
                days,
                "null, unless `run_events.backend` is `db`: other journals are not swept",
            );
        }
        check.within_if_set(
            "checkpoints_per_thread",
            self.checkpoints_per_thread,
            1..=1_000_000,
        );
        check.within_if_set("checkpoint_days", self.checkpoint_days, 1..=MAX_DAYS);
        check.within("audit_days", self.audit_days, 1..=MAX_DAYS);
        check.within(
            "sweep_interval_minutes",
            self.sweep_interval_minutes,
            1..=1440,
        );
    }
}
