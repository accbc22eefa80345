//! `quotas`: limits of what one user may store and run at a time.

use serde::Deserialize;

use super::check::Checker;
use crate::quota::UserQuotas;

const MIB: u64 = 1 << 20;

/// Limits of each user. `None` selects the default of the installation, 0 is unlimited.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct QuotasConfig {
    /// Maximum number of runs that execute; further ones are queued.
    pub active_runs: Option<u64>,
    /// Maximum number of queued runs, including delayed ones; further ones are rejected.
    pub queued_runs: Option<u64>,
    /// Maximum number of threads.
    pub threads: Option<u64>,
    /// Maximum number of assistants.
    pub assistants: Option<u64>,
    /// Maximum number of items of the item store.
    pub items: Option<u64>,
    /// Maximum size of the rows in the database, in MiB.
    pub stored_mb: Option<u64>,
    /// Maximum size of the files, in MiB.
    pub files_mb: Option<u64>,
}

/// Defaults of a server that other machines can reach.
const SHARED: UserQuotas = UserQuotas {
    active_runs: Some(100),
    queued_runs: Some(1_000),
    threads: Some(200_000),
    assistants: Some(1_000),
    items: Some(200_000),
    stored_bytes: Some(10_240 * MIB),
    file_bytes: Some(10_240 * MIB),
};

impl QuotasConfig {
    /// Returns the limits that apply. Without a configured value, a shared server has limits, and
    /// another one has none. A server is shared if other machines can reach it.
    pub fn effective(&self, is_shared: bool) -> UserQuotas {
        let defaults = if is_shared {
            SHARED
        } else {
            UserQuotas::default()
        };
        let count = |configured: Option<u64>, default: Option<u64>| match configured {
            None => default,
            Some(0) => None,
            limit => limit,
        };
        let bytes = |configured: Option<u64>, default| {
            count(configured.map(|mib| mib.saturating_mul(MIB)), default)
        };
        UserQuotas {
            active_runs: count(self.active_runs, defaults.active_runs),
            queued_runs: count(self.queued_runs, defaults.queued_runs),
            threads: count(self.threads, defaults.threads),
            assistants: count(self.assistants, defaults.assistants),
            items: count(self.items, defaults.items),
            stored_bytes: bytes(self.stored_mb, defaults.stored_bytes),
            file_bytes: bytes(self.files_mb, defaults.file_bytes),
        }
    }

    pub(super) fn check(&self, check: &mut Checker) {
        for (key, limit) in [
            ("active_runs", self.active_runs),
            ("queued_runs", self.queued_runs),
            ("threads", self.threads),
            ("assistants", self.assistants),
            ("items", self.items),
            ("stored_mb", self.stored_mb),
            ("files_mb", self.files_mb),
        ] {
            check.within(key, limit.unwrap_or_default(), ..1 << 40);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_apply_to_shared_servers_only() {
        let config = QuotasConfig {
            threads: Some(7),
            items: Some(0),
            stored_mb: Some(2),
            ..QuotasConfig::default()
        };
        let expected = UserQuotas {
            threads: Some(7),
            stored_bytes: Some(2 << 20),
            ..UserQuotas::default()
        };
        assert_eq!(config.effective(false), expected);
        let shared = UserQuotas {
            threads: Some(7),
            items: None,
            stored_bytes: Some(2 << 20),
            ..SHARED
        };
        assert_eq!(config.effective(true), shared);
    }
}
