//! Which stream bridge the configuration asks for.

use std::sync::Arc;
use std::time::Duration;

use deerflow_bridges::factory::{self, StreamBridgeConfig as Choice};
use harness::config::{AppConfig, StreamBridgeKind};
use harness::runtime::memory::MemoryOptions;
use harness::runtime::stream_bridge::StreamBridge;
use secrecy::ExposeSecret;

pub(super) fn open(config: &AppConfig) -> anyhow::Result<Arc<dyn StreamBridge>> {
    let section = &config.stream_bridge;
    let choice = match section.kind {
        StreamBridgeKind::Redis => {
            Choice::Redis { url: section.redis_url.as_ref().map(|url| url.expose_secret().to_owned()).unwrap_or_default() }
        }
        // `queue_maxsize` is DeerFlow's window of 256 events; ours keeps whole runs, so it is not a limit here.
        _ => Choice::Memory(MemoryOptions {
            retention_after_end: Duration::from_secs(section.stream_ttl_seconds),
            idle_stream_ttl: config.runs.wall_clock_limit().saturating_add(Duration::from_secs(60)),
            ..MemoryOptions::default()
        }),
    };
    Ok(factory::stream_bridge(choice)?)
}
