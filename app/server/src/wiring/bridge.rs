//! Which stream bridge the configuration asks for.

use std::sync::Arc;
use std::time::Duration;

use deerflow_bridges::factory::{self, StreamBridgeConfig as Choice};
use deerflow_bridges::redis::RedisOptions;
use harness::config::{AppConfig, StreamBridgeConfig, StreamBridgeKind};
use harness::runtime::memory::MemoryOptions;
use harness::runtime::runs::NodeBell;
use harness::runtime::stream_bridge::{StreamBridge, StreamLog};
use harness::runtime::tasks::Tasks;
use secrecy::ExposeSecret;

use crate::config::{Deployment, Settings};

/// The bridge, which gives what it cannot keep to `log`, and the bell between those who share it.
pub(super) fn open(
    config: &AppConfig,
    settings: &Settings,
    log: Arc<dyn StreamLog>,
    tasks: &Tasks,
) -> anyhow::Result<(Arc<dyn StreamBridge>, Arc<dyn NodeBell>)> {
    let section = &config.stream_bridge;
    let retention_after_end = Duration::from_secs(section.stream_ttl_seconds);
    let idle_stream_ttl = config
        .runs
        .wall_clock_limit()
        .saturating_add(Duration::from_secs(60));
    // `queue_maxsize` is DeerFlow's window of 256 events; ours keeps whole runs, so it is not a limit here. Nor is
    // `max_connections`: a node has five.
    let choice = match section.kind {
        StreamBridgeKind::Redis => Choice::Redis(RedisOptions {
            retention_after_end,
            idle_stream_ttl,
            ..redis(section, settings)
        }),
        _ => Choice::Memory(MemoryOptions {
            retention_after_end,
            idle_stream_ttl,
            ..MemoryOptions::default()
        }),
    };
    let bell = factory::node_bell(&choice, tasks.clone())?;
    Ok((factory::stream_bridge(choice, log)?, bell))
}

/// The server that is configured, and what is asked of it where this process is deployed.
pub(super) fn redis(section: &StreamBridgeConfig, settings: &Settings) -> RedisOptions {
    let url = section
        .redis_url
        .as_ref()
        .map(|url| url.expose_secret().to_owned())
        .unwrap_or_default();
    RedisOptions {
        refuse_eviction: settings.deployment == Deployment::Production,
        ..RedisOptions::at(url)
    }
}
