//! The one place that chooses a stream bridge.

use std::fmt;
use std::sync::Arc;

use harness::runtime::stream_bridge::StreamBridge;

use harness::runtime::memory::{InvalidOption, MemoryOptions, MemoryStreamBridge};

/// Which bridge carries the runs' events: the setting `stream_bridge`.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum StreamBridgeConfig {
    /// `type: memory`, for one process.
    Memory(MemoryOptions),
    /// `type: redis`, for several.
    Redis {
        /// Where the server is, with its password.
        url: String,
    },
}

impl Default for StreamBridgeConfig {
    fn default() -> Self {
        Self::Memory(MemoryOptions::default())
    }
}

impl fmt::Debug for StreamBridgeConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory(options) => f.debug_tuple("Memory").field(options).finish(),
            // The address may hold a password.
            Self::Redis { .. } => f.debug_struct("Redis").finish_non_exhaustive(),
        }
    }
}

/// Why no bridge could be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FactoryError {
    /// An option is out of its range.
    #[error(transparent)]
    InvalidOption(#[from] InvalidOption),
    /// The asked bridge is not part of this build.
    #[error("stream_bridge.type is {0:?}, but this build has no Redis bridge yet: use \"memory\"")]
    NotInThisBuild(&'static str),
}

/// The bridge that `config` asks for, not yet started.
pub fn stream_bridge(config: StreamBridgeConfig) -> Result<Arc<dyn StreamBridge>, FactoryError> {
    match config {
        StreamBridgeConfig::Memory(options) => Ok(Arc::new(MemoryStreamBridge::new(options)?)),
        StreamBridgeConfig::Redis { .. } => Err(FactoryError::NotInThisBuild("redis")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_is_a_memory_bridge() {
        let bridge = stream_bridge(StreamBridgeConfig::default()).expect("the defaults are valid");
        assert!(format!("{bridge:?}").starts_with("MemoryStreamBridge"));
    }

    #[test]
    fn a_redis_bridge_is_refused_by_the_name_of_the_setting_and_without_its_password() {
        let config = StreamBridgeConfig::Redis { url: "redis://:hunter2@example.org".to_owned() };
        assert!(!format!("{config:?}").contains("hunter2"));
        let error = stream_bridge(config).expect_err("there is none").to_string();
        assert!(error.contains("stream_bridge.type") && error.contains("no Redis bridge yet"), "{error}");
    }

    #[test]
    fn an_option_of_zero_is_refused_by_its_name() {
        let options = MemoryOptions { max_events: 0, ..MemoryOptions::default() };
        let error = stream_bridge(StreamBridgeConfig::Memory(options)).expect_err("nothing could be kept");
        assert_eq!(error.to_string(), "stream_bridge.memory.max_events must be greater than zero");
    }
}
