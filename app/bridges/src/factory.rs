//! Builds the configured stream bridge and node notifier.

use std::sync::Arc;

use deerflow_core::tasks::Tasks;
use deerflow_runtime::in_memory::{
    InMemoryNodeNotifier, InMemoryOptions, InMemoryStreamBridge, InvalidOption,
};
use deerflow_runtime::runs::NodeNotifier;
use deerflow_runtime::stream_bridge::{StreamBridge, StreamLog};

use crate::redis::{InvalidAddress, RedisNodeNotifier, RedisOptions, RedisStreamBridge};

/// Stream bridge of the configuration: the setting `stream_bridge`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum StreamBridgeConfig {
    /// `type: memory`, for a single process.
    Memory(InMemoryOptions),
    /// `type: redis`, for several processes.
    Redis(RedisOptions),
}

impl Default for StreamBridgeConfig {
    fn default() -> Self {
        Self::Memory(InMemoryOptions::default())
    }
}

/// Error of building a bridge.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FactoryError {
    /// An option is out of range.
    #[error(transparent)]
    InvalidOption(#[from] InvalidOption),
    /// The Redis URL is not valid.
    #[error(transparent)]
    InvalidAddress(#[from] InvalidAddress),
}

/// Builds the bridge that `config` selects, not started. Events that the bridge cannot store go to
/// `log`.
pub fn stream_bridge(
    config: StreamBridgeConfig,
    log: Arc<dyn StreamLog>,
) -> Result<Arc<dyn StreamBridge>, FactoryError> {
    match config {
        StreamBridgeConfig::Memory(options) => {
            Ok(Arc::new(InMemoryStreamBridge::with_log(options, log)?))
        }
        StreamBridgeConfig::Redis(options) => {
            Ok(Arc::new(RedisStreamBridge::with_log(options, log)?))
        }
    }
}

/// Builds the notifier between the processes of such a bridge. `tasks` completes notifications in
/// flight.
pub fn node_notifier(
    config: &StreamBridgeConfig,
    tasks: Tasks,
) -> Result<Arc<dyn NodeNotifier>, FactoryError> {
    match config {
        StreamBridgeConfig::Memory(_) => Ok(Arc::new(InMemoryNodeNotifier::default())),
        StreamBridgeConfig::Redis(options) => Ok(Arc::new(RedisNodeNotifier::new(options, tasks)?)),
    }
}

#[cfg(test)]
mod tests {
    use deerflow_runtime::in_memory::InMemoryStores;

    use super::*;

    fn made(config: StreamBridgeConfig) -> Result<Arc<dyn StreamBridge>, FactoryError> {
        stream_bridge(config, Arc::new(InMemoryStores::new()))
    }

    #[test]
    fn default_config_is_in_memory_bridge() {
        let bridge = made(StreamBridgeConfig::default()).expect("the defaults are valid");
        assert!(format!("{bridge:?}").starts_with("InMemoryStreamBridge"));
    }

    #[test]
    fn debug_and_errors_omit_redis_password() {
        let redis = |url: &str| StreamBridgeConfig::Redis(RedisOptions::at(url));
        let config = redis("rediss://ann:hunter2@example.org/1");
        let bridge = made(config.clone()).expect("an address");
        let error = made(redis("http://ann:hunter2@example.org")).expect_err("not an address");
        assert!(!format!("{config:?} {bridge:?} {error:?} {error}").contains("hunter2"));
        assert!(error.to_string().contains("stream_bridge.redis_url"));
    }

    #[test]
    fn zero_option_is_rejected_by_name() {
        let options = InMemoryOptions {
            max_events: 0,
            ..InMemoryOptions::default()
        };
        let error =
            made(StreamBridgeConfig::Memory(options)).expect_err("no event could be stored");
        assert_eq!(
            error.to_string(),
            "stream_bridge.memory.max_events must be greater than zero"
        );
    }
}
