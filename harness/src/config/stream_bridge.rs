//! `stream_bridge`: how a run's events reach those who watch it.

use secrecy::SecretString;
use serde::Deserialize;

use super::check::Checker;
use super::open_keys::optional_secret;

/// The road from runs to viewers.
#[derive(Debug, Clone, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct StreamBridgeConfig {
    /// The kind of bridge.
    #[serde(rename = "type")]
    pub kind: StreamBridgeKind,
    /// Redis address; the environment's `DEER_FLOW_STREAM_BRIDGE_REDIS_URL`, then `REDIS_URL`, stand in.
    #[serde(deserialize_with = "optional_secret")]
    pub redis_url: Option<SecretString>,
    /// Events kept per run for those who come late.
    pub queue_maxsize: usize,
    /// Most connections to Redis; null leaves it to the bridge.
    pub max_connections: Option<u32>,
    /// Seconds a finished stream is kept.
    pub stream_ttl_seconds: u64,
    /// Seconds after which the stream of a recovered run is cleared.
    pub recovered_stream_cleanup_delay_seconds: f64,
}

impl Default for StreamBridgeConfig {
    fn default() -> Self {
        Self {
            kind: StreamBridgeKind::Memory,
            redis_url: None,
            queue_maxsize: 256,
            max_connections: None,
            stream_ttl_seconds: 86_400,
            recovered_stream_cleanup_delay_seconds: 60.0,
        }
    }
}

impl StreamBridgeConfig {
    pub(super) fn check(&self, check: &mut Checker) {
        check.within("queue_maxsize", self.queue_maxsize, 1..);
        check.within_if_set("max_connections", self.max_connections, 1..);
        check.within(
            "recovered_stream_cleanup_delay_seconds",
            self.recovered_stream_cleanup_delay_seconds,
            0.0..,
        );
        if self.kind == StreamBridgeKind::Redis && self.redis_url.is_none() {
            check.refuse(
                "redis_url",
                "empty",
                "an address (here or in REDIS_URL), since `type` is redis",
            );
        }
    }
}

/// The kind of bridge.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum StreamBridgeKind {
    /// Inside this process.
    #[default]
    Memory,
    /// Through Redis, for several processes.
    Redis,
}
