//! The one place that chooses a stream bridge.

use std::sync::Arc;

use harness::runtime::memory::{InvalidOption, MemoryNodeBell, MemoryOptions, MemoryStreamBridge};
use harness::runtime::runs::NodeBell;
use harness::runtime::stream_bridge::{StreamBridge, StreamLog};
use harness::runtime::tasks::Tasks;

use crate::redis::{BadAddress, RedisNodeBell, RedisOptions, RedisStreamBridge};

/// Which bridge carries the runs' events: the setting `stream_bridge`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum StreamBridgeConfig {
    /// `type: memory`, for one process.
    Memory(MemoryOptions),
    /// `type: redis`, for several.
    Redis(RedisOptions),
}

impl Default for StreamBridgeConfig {
    fn default() -> Self {
        Self::Memory(MemoryOptions::default())
    }
}

/// Why no bridge could be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FactoryError {
    /// An option is out of its range.
    #[error(transparent)]
    InvalidOption(#[from] InvalidOption),
    /// Redis is asked for at an address that is none.
    #[error(transparent)]
    BadAddress(#[from] BadAddress),
}

/// The bridge that `config` asks for, not yet started. What it cannot keep goes to `log`.
pub fn stream_bridge(
    config: StreamBridgeConfig,
    log: Arc<dyn StreamLog>,
) -> Result<Arc<dyn StreamBridge>, FactoryError> {
    match config {
        StreamBridgeConfig::Memory(options) => {
            Ok(Arc::new(MemoryStreamBridge::with_log(options, log)?))
        }
        StreamBridgeConfig::Redis(options) => {
            Ok(Arc::new(RedisStreamBridge::with_log(options, log)?))
        }
    }
}

/// The bell between the processes that such a bridge joins; what it has begun to ring, `tasks` finish.
pub fn node_bell(
    config: &StreamBridgeConfig,
    tasks: Tasks,
) -> Result<Arc<dyn NodeBell>, FactoryError> {
    match config {
        StreamBridgeConfig::Memory(_) => Ok(Arc::new(MemoryNodeBell::default())),
        StreamBridgeConfig::Redis(options) => Ok(Arc::new(RedisNodeBell::new(options, tasks)?)),
    }
}

#[cfg(test)]
mod tests {
    use harness::runtime::memory::MemoryStores;

    use super::*;

    fn made(config: StreamBridgeConfig) -> Result<Arc<dyn StreamBridge>, FactoryError> {
        stream_bridge(config, Arc::new(MemoryStores::new()))
    }

    #[test]
    fn the_default_is_a_memory_bridge() {
        let bridge = made(StreamBridgeConfig::default()).expect("the defaults are valid");
        assert!(format!("{bridge:?}").starts_with("MemoryStreamBridge"));
    }

    #[test]
    fn neither_a_redis_bridge_nor_a_bad_address_shows_its_password() {
        let redis = |url: &str| StreamBridgeConfig::Redis(RedisOptions::at(url));
        let config = redis("rediss://ann:hunter2@example.org/1");
        let bridge = made(config.clone()).expect("an address");
        let error = made(redis("http://ann:hunter2@example.org")).expect_err("no address");
        assert!(!format!("{config:?} {bridge:?} {error:?} {error}").contains("hunter2"));
        assert!(error.to_string().contains("stream_bridge.redis_url"));
    }

    #[test]
    fn an_option_of_zero_is_refused_by_its_name() {
        let options = MemoryOptions {
            max_events: 0,
            ..MemoryOptions::default()
        };
        let error = made(StreamBridgeConfig::Memory(options)).expect_err("nothing could be kept");
        assert_eq!(
            error.to_string(),
            "stream_bridge.memory.max_events must be greater than zero"
        );
    }
}
