//! What the construction of every area reads.

use std::sync::Arc;

use harness::config::AppConfig;
use harness::ids::SystemIds;
use harness::runtime::tasks::Tasks;
use tokio_util::sync::CancellationToken;

use crate::config::{ConfigHandle, Settings};

/// Settings, configuration and tasks of the application that is being built.
#[derive(Debug)]
pub(super) struct Context<'a> {
    pub(super) settings: &'a Settings,
    /// Configuration, which may change later.
    pub(super) config: &'a ConfigHandle,
    /// Configuration at the start.
    pub(super) now: Arc<AppConfig>,
    pub(super) ids: Arc<SystemIds>,
    /// Tasks of runs and services.
    pub(super) tasks: Tasks,
    /// Canceled when the process shuts down.
    pub(super) shutdown: CancellationToken,
}

impl<'a> Context<'a> {
    /// Reads the current configuration, and rejects one that is unsafe with these settings.
    pub(super) fn new(
        settings: &'a Settings,
        config: &'a ConfigHandle,
        tasks: Tasks,
        shutdown: CancellationToken,
    ) -> anyhow::Result<Self> {
        let now = config.current();
        anyhow::ensure!(
            !now.testing.conformance_agent || settings.is_loopback(),
            "refusing to start: testing.conformance_agent offers an agent for tests, and GATEWAY_HOST {} is not loopback",
            settings.host
        );
        Ok(Self {
            settings,
            config,
            now,
            ids: Arc::new(SystemIds::default()),
            tasks,
            shutdown,
        })
    }
}
