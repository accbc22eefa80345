//! The memory bridge keeps the contract.

use std::sync::Arc;
use std::time::Duration;

use crate::runtime::stream_bridge::StreamBridge;
use crate::testkit::stream_bridge::{StreamBridgeFactory, TestLimits};
use async_trait::async_trait;

use super::{MemoryOptions, MemoryStreamBridge};

#[derive(Debug)]
struct Memory;

#[async_trait]
impl StreamBridgeFactory for Memory {
    async fn open(&self, limits: TestLimits) -> Arc<dyn StreamBridge> {
        let options = MemoryOptions {
            max_events: limits.max_events,
            stalled_subscriber_timeout: limits.stalled_subscriber_timeout,
            idle_stream_ttl: limits.idle_stream_ttl,
            sweep_interval: Duration::from_secs(1),
            ..MemoryOptions::default()
        };
        let bridge = MemoryStreamBridge::new(options).expect("the limits are valid");
        bridge.start().await.expect("it is open");
        Arc::new(bridge)
    }
}

crate::stream_bridge_contract!(
    [#[tokio::test(start_paused = true)]] Memory
);
