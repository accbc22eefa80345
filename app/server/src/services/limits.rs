//! Applies configuration changes to the limits of runs and the quotas of users.

use std::time::Duration;

use deerflow_stores::Database;
use harness::config::AppConfig;
use harness::quota::UserQuotas;
use harness::runtime::runs::{NodeLifecycle, RunLimits};
use harness::runtime::tasks::{TaskKind, Tasks};
use harness::sandbox::FileQuota;

use crate::config::{ConfigHandle, Settings};

/// Interval of the measurements of data that users have created.
const MEASURE_INTERVAL: Duration = Duration::from_secs(15);

/// Limits that depend on whether other machines can reach the server.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LimitRules {
    is_shared: bool,
}

impl LimitRules {
    /// Creates the rules of a process with these settings.
    pub(crate) fn new(settings: &Settings) -> Self {
        Self {
            is_shared: !settings.is_loopback(),
        }
    }

    /// Returns the quotas of each user.
    pub(crate) fn quotas(self, config: &AppConfig) -> UserQuotas {
        config.quotas.effective(self.is_shared)
    }

    /// Returns the limits of runs.
    pub(crate) fn runs(self, config: &AppConfig) -> RunLimits {
        RunLimits {
            per_user: self.quotas(config).into(),
            ..RunLimits::from(config)
        }
    }
}

/// Stores that check quotas.
#[derive(Debug, Clone)]
pub(crate) struct LimitedStores {
    database: Database,
    files: FileQuota,
}

impl LimitedStores {
    /// Creates the list of the stores.
    pub(crate) fn new(database: &Database, files: &FileQuota) -> Self {
        Self {
            database: database.clone(),
            files: files.clone(),
        }
    }

    /// Sets the quotas of each user.
    pub(crate) fn set(&self, quotas: UserQuotas) {
        self.database.quotas().set(quotas);
        self.files.set(quotas.file_bytes);
    }
}

/// Starts a task that updates the limits of new runs and the quotas when the configuration changes,
/// and that measures the data of users at intervals.
pub(crate) fn apply_config_changes(
    config: &ConfigHandle,
    rules: LimitRules,
    node: NodeLifecycle,
    stores: LimitedStores,
    tasks: &Tasks,
) {
    let mut changes = config.subscribe();
    let token = tasks.token().clone();
    let database = stores.database.clone();
    let measuring = tasks.token().clone().run_until_cancelled_owned(async move {
        loop {
            tokio::time::sleep(MEASURE_INTERVAL).await;
            database.measure_quotas().await;
        }
    });
    tasks.spawn(TaskKind::Service, "quota measurements", async move {
        let _cancelled: Option<()> = measuring.await;
    });
    tasks.spawn(TaskKind::Service, "limits", async move {
        loop {
            tokio::select! {
                () = token.cancelled() => return,
                changed = changes.changed() => if changed.is_err() { return },
            }
            let config = changes.borrow_and_update().clone();
            node.set_limits(rules.runs(&config));
            stores.set(rules.quotas(&config));
        }
    });
}
