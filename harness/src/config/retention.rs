//! `retention`: how long what nobody needs any more stays. What users can see stays for ever unless this says otherwise.

use std::time::Duration;

use serde::Deserialize;

use super::RunEventsBackend;
use super::check::Checker;

/// How long things stay that have no other end.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct RetentionConfig {
    /// Days that calls of webhooks stay that nobody took.
    pub dead_letter_days: u64,
    /// Days that the journal of a run stays after its end; for ever when absent. Only for a journal in the database.
    pub run_event_days: Option<u64>,
    /// How many of its newest checkpoints a thread keeps; all when neither this nor the days are set.
    pub checkpoints_per_thread: Option<u64>,
    /// Days that checkpoints stay beside those.
    pub checkpoint_days: Option<u64>,
    /// Minutes between two looks.
    pub sweep_interval_minutes: u64,
}

impl Default for RetentionConfig {
    fn default() -> Self {
        Self {
            dead_letter_days: 14,
            run_event_days: None,
            checkpoints_per_thread: None,
            checkpoint_days: None,
            sweep_interval_minutes: 10,
        }
    }
}

/// A hundred years.
const LONGEST_DAYS: u64 = 36_600;

impl RetentionConfig {
    /// [`RetentionConfig::sweep_interval_minutes`] as a duration.
    pub fn sweep_interval(&self) -> Duration {
        Duration::from_secs(self.sweep_interval_minutes.saturating_mul(60))
    }

    pub(super) fn check(&self, journal: RunEventsBackend, check: &mut Checker) {
        check.within("dead_letter_days", self.dead_letter_days, 1..=LONGEST_DAYS);
        check.within_if_set("run_event_days", self.run_event_days, 1..=LONGEST_DAYS);
        if let Some(days) = self
            .run_event_days
            .filter(|_| journal != RunEventsBackend::Db)
        {
            check.refuse(
                "run_event_days",
                days,
                "null, unless `run_events.backend` is `db`: no other journal is looked through",
            );
        }
        check.within_if_set(
            "checkpoints_per_thread",
            self.checkpoints_per_thread,
            1..=1_000_000,
        );
        check.within_if_set("checkpoint_days", self.checkpoint_days, 1..=LONGEST_DAYS);
        check.within(
            "sweep_interval_minutes",
            self.sweep_interval_minutes,
            1..=1440,
        );
    }
}
