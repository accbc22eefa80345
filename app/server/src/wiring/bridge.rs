//! Creates the configured stream bridge.

use std::sync::Arc;
use std::time::Duration;

use deerflow_bridges::factory::{self, StreamBridgeConfig as Choice};
use deerflow_bridges::redis::RedisOptions;
use harness::config::{StreamBridgeConfig, StreamBridgeKind};
use harness::runtime::in_memory::InMemoryOptions;
use harness::runtime::runs::NodeNotifier;
use harness::runtime::stream_bridge::{StreamBridge, StreamLog};
use secrecy::ExposeSecret;

use super::context::Context;
use crate::config::{Deployment, Settings};

/// Returns the bridge, which passes evicted events to `log`, and the notifier of the nodes that
/// share it.
pub(super) fn open(
    context: &Context<'_>,
    log: Arc<dyn StreamLog>,
) -> anyhow::Result<(Arc<dyn StreamBridge>, Arc<dyn NodeNotifier>)> {
    let config = &context.now;
    let section = &config.stream_bridge;
    let retention_after_end = Duration::from_secs(section.stream_ttl_seconds);
    let idle_stream_ttl = config
        .runs
        .wall_clock_limit()
        .saturating_add(Duration::from_secs(60));
    // `queue_maxsize` is DeerFlow's window of 256 events; this bridge retains whole runs, so it is
    // not a limit here. Neither is `max_connections`: a node uses five.
    let choice = match section.kind {
        StreamBridgeKind::Redis => Choice::Redis(RedisOptions {
            retention_after_end,
            idle_stream_ttl,
            ..redis(section, context.settings)
        }),
        _ => Choice::Memory(InMemoryOptions {
            retention_after_end,
            idle_stream_ttl,
            ..InMemoryOptions::default()
        }),
    };
    let bell = factory::node_notifier(&choice, context.tasks.clone())?;
    Ok((factory::stream_bridge(choice, log)?, bell))
}

/// Options of the configured Redis server, with the requirements of this deployment.
pub(crate) fn redis(section: &StreamBridgeConfig, settings: &Settings) -> RedisOptions {
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
