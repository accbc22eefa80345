//! Limits of what one user may store and run at a time.

use std::time::Duration;

use tokio::time::Instant;

/// Resource whose amount is limited per user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Quota {
    /// Runs that a process executes.
    ActiveRuns,
    /// Runs that are queued, including delayed ones.
    QueuedRuns,
    /// Threads.
    Threads,
    /// Assistants.
    Assistants,
    /// Items of the item store.
    Items,
    /// Bytes of rows in the database.
    StoredBytes,
    /// Bytes of files: uploads, workspaces and outputs of threads.
    FileBytes,
    /// Versions of one assistant.
    AssistantVersions,
}

/// Maximum number of versions of one assistant.
pub const MAX_ASSISTANT_VERSIONS: u64 = 1_000;

impl Quota {
    /// Resources of which the amounts of a user are counted.
    pub const ALL: [Self; 7] = [
        Self::ActiveRuns,
        Self::QueuedRuns,
        Self::Threads,
        Self::Assistants,
        Self::Items,
        Self::StoredBytes,
        Self::FileBytes,
    ];

    /// Returns the name in configurations, answers and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ActiveRuns => "active_runs",
            Self::QueuedRuns => "queued_runs",
            Self::Threads => "threads",
            Self::Assistants => "assistants",
            Self::Items => "items",
            Self::StoredBytes => "stored_bytes",
            Self::FileBytes => "file_bytes",
            Self::AssistantVersions => "assistant_versions",
        }
    }

    /// Reports whether the amount is a number of bytes.
    pub fn is_bytes(self) -> bool {
        matches!(self, Self::StoredBytes | Self::FileBytes)
    }
}

impl std::fmt::Display for Quota {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Error of a request that would exceed a limit of its user. Nothing was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the quota {quota} is exceeded: {used} used, {limit} allowed")]
pub struct QuotaExceeded {
    /// Resource.
    pub quota: Quota,
    /// Current amount of the user.
    pub used: u64,
    /// Maximum amount.
    pub limit: u64,
}

/// Limits of each user. `None` is unlimited.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UserQuotas {
    /// Maximum number of runs that execute; further ones are queued.
    pub active_runs: Option<u64>,
    /// Maximum number of queued runs; further ones are rejected.
    pub queued_runs: Option<u64>,
    /// Maximum number of threads.
    pub threads: Option<u64>,
    /// Maximum number of assistants.
    pub assistants: Option<u64>,
    /// Maximum number of items.
    pub items: Option<u64>,
    /// Maximum size of the rows, in bytes. Measured at intervals, so that it can be exceeded by
    /// what is written between two measurements.
    pub stored_bytes: Option<u64>,
    /// Maximum size of the files, in bytes. Measured like `stored_bytes`.
    pub file_bytes: Option<u64>,
}

impl UserQuotas {
    /// Returns the limit of a resource.
    pub fn limit(&self, quota: Quota) -> Option<u64> {
        match quota {
            Quota::ActiveRuns => self.active_runs,
            Quota::QueuedRuns => self.queued_runs,
            Quota::Threads => self.threads,
            Quota::Assistants => self.assistants,
            Quota::Items => self.items,
            Quota::StoredBytes => self.stored_bytes,
            Quota::FileBytes => self.file_bytes,
            Quota::AssistantVersions => Some(MAX_ASSISTANT_VERSIONS),
        }
    }

    /// Checks that the amount `used` permits one more.
    ///
    /// # Errors
    /// [`QuotaExceeded`] if `used` reaches the limit.
    pub fn check(&self, quota: Quota, used: u64) -> Result<(), QuotaExceeded> {
        match self.limit(quota) {
            Some(limit) if used >= limit => Err(QuotaExceeded { quota, used, limit }),
            _ => Ok(()),
        }
    }
}

/// A measurement may take at most one part in this number of the time.
const MAX_SHARE: u32 = 50;

/// Last measurement of the size of a user's data, which may have failed.
#[derive(Debug, Clone, Copy)]
pub struct Measurement {
    at: Instant,
    took: Duration,
}

impl Measurement {
    /// Maximum number of users whose sizes are remembered.
    pub const MAX_USERS: usize = 10_000;

    /// Returns a measurement that starts now.
    pub fn start() -> Self {
        Self {
            at: Instant::now(),
            took: Duration::ZERO,
        }
    }

    /// Returns this measurement after its end.
    #[must_use]
    pub fn ended(self) -> Self {
        let took = self.at.elapsed();
        Self { took, ..self }
    }

    /// Reports whether the size may be measured again: after `interval`, and later if this
    /// measurement took long.
    pub fn may_be_repeated(&self, interval: Duration) -> bool {
        self.at.elapsed() >= interval.max(self.took * MAX_SHARE)
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn slow_measurement_is_repeated_less_often() {
        let second = Duration::from_secs(1);
        let quick = Measurement::start().ended();
        let started = Measurement::start();
        advance(2 * second).await;
        let slow = started.ended();
        advance(97 * second).await;
        assert!(quick.may_be_repeated(99 * second));
        assert!(!quick.may_be_repeated(100 * second));
        assert!(!slow.may_be_repeated(second), "2 of 99 s");
        advance(second).await;
        assert!(slow.may_be_repeated(second), "2 of 100 s");
    }

    #[test]
    fn amount_at_limit_is_exceeded() {
        let quotas = UserQuotas {
            threads: Some(2),
            ..UserQuotas::default()
        };
        assert_eq!(quotas.check(Quota::Threads, 1), Ok(()));
        let exceeded = quotas.check(Quota::Threads, 2).unwrap_err();
        assert_eq!(
            exceeded.to_string(),
            "the quota threads is exceeded: 2 used, 2 allowed"
        );
        assert_eq!(quotas.check(Quota::Items, u64::MAX), Ok(()));
    }
}
