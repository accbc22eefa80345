//! Probes of servers and programs that `deerflow doctor` uses.

use std::time::Duration;

use async_trait::async_trait;
use deerflow_channels::ChannelInspector;
use harness::config::{AppConfig, DatabaseConfig, ModelConfig, SandboxConfig, StreamBridgeConfig};
use harness::config_file::Environment;
use harness::sandbox::command::bubblewrap::ProbeReport;

use crate::config::Settings;

/// Timeout of one probe of a server.
pub(super) const PROBE_TIMEOUT: Duration = Duration::from_secs(10);

/// Read-only probe of the configured database.
#[async_trait]
pub trait DatabaseProbe: Send + Sync {
    /// Returns a description (kind, version), or the reason for the failure.
    async fn probe(&self, database: &DatabaseConfig, settings: &Settings)
    -> Result<String, String>;
}

/// Read-only probe of the Redis server that carries streams.
#[async_trait]
pub trait RedisProbe: Send + Sync {
    /// Returns `Ok` if Redis retains streams when its memory is full, `Err` if it may evict them,
    /// each with a description; the outer error is the reason why Redis did not answer.
    async fn probe(
        &self,
        bridge: &StreamBridgeConfig,
        settings: &Settings,
    ) -> Result<Result<String, String>, String>;
}

/// Checks whether the provider of a model entry can be built.
pub trait ProviderProbe: Send + Sync {
    /// Returns the provider kind, or what to configure.
    fn probe(&self, model: &ModelConfig) -> Result<String, String>;
}

/// Probe of the command sandbox. It leaves no files behind.
#[async_trait]
pub trait CommandProbe: Send + Sync {
    /// Reports whether a configured tool runs commands.
    fn is_configured(&self, config: &AppConfig) -> bool;
    /// Reports which layers of the sandbox work.
    async fn probe(&self, sandbox: &SandboxConfig) -> ProbeReport;
    /// Returns the container backend, or why it is unavailable; `None` if commands do not run in
    /// containers.
    async fn containers(
        &self,
        sandbox: &SandboxConfig,
        environment: &Environment,
    ) -> Option<Result<String, String>>;
}

/// Access to the stored credentials of chat channels, and to their platforms.
#[async_trait]
pub trait ChannelProbe: Send + Sync {
    /// Returns the configured channels with their stored credentials, or the reason why these
    /// cannot be read.
    async fn inspector(
        &self,
        config: &AppConfig,
        settings: &Settings,
        environment: &Environment,
    ) -> Result<ChannelInspector, String>;
}

/// Probes provided by the composition root, which knows the adapters.
#[derive(Clone, Copy, Default)]
pub struct Probes<'a> {
    /// Database probe; without it, only the database directory is checked.
    pub database: Option<&'a dyn DatabaseProbe>,
    /// Provider probe; without it, only environment variables are checked.
    pub provider: Option<&'a dyn ProviderProbe>,
    /// Redis probe, used if streams go through Redis.
    pub redis: Option<&'a dyn RedisProbe>,
    /// Sandbox probe, used if a tool runs commands.
    pub commands: Option<&'a dyn CommandProbe>,
    /// Probe of chat channels; without it, only the configuration is checked.
    pub channels: Option<&'a dyn ChannelProbe>,
    /// Timeout of the health request to the process that uses the port; two seconds by default.
    pub health_timeout: Option<Duration>,
}
