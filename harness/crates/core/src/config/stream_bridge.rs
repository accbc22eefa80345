//! `stream_bridge`: transport of a run's events to its viewers.

use secrecy::SecretString;
use serde::Deserialize;

use super::check::Checker;
use super::open_keys::optional_secret;

/// Transport of events from runs to viewers.
#[derive(Debug, Clone, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct StreamBridgeConfig {
    /// Kind of bridge.
    #[serde(rename = "type")]
    pub kind: StreamBridgeKind,
    /// Redis address; default: the environment variables `DEER_FLOW_STREAM_BRIDGE_REDIS_URL`, then
    /// `REDIS_URL`.
    #[serde(deserialize_with = "optional_secret")]
    pub redis_url: Option<SecretString>,
    /// Has no effect: streams keep all events of a run.
    pub queue_maxsize: usize,
    /// Has no effect: the number of connections to Redis is fixed.
    pub max_connections: Option<u32>,
    /// Retention of a finished stream, in seconds.
    pub stream_ttl_seconds: u64,
    /// Has no effect: `stream_ttl_seconds` determines the retention of every stream.
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

/// Kind of bridge.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum StreamBridgeKind {
    /// Within this process.
    #[default]
    Memory,
    /// Redis, for several processes.
    Redis,
}
