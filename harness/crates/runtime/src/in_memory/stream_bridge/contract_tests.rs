//! The in-memory bridge satisfies the contract.

use std::sync::Arc;
use std::time::Duration;

use crate::stream_bridge::{StreamBridge, StreamLog};
use crate::testkit::stream_bridge::{StreamBridgeFactory, TestLimits};
use async_trait::async_trait;

use super::{InMemoryOptions, InMemoryStreamBridge, InvalidOption};

#[derive(Debug)]
struct Memory;

fn options(limits: TestLimits) -> InMemoryOptions {
    InMemoryOptions {
        max_events: limits.max_events,
        stalled_subscriber_timeout: limits.stalled_subscriber_timeout,
        idle_stream_ttl: limits.idle_stream_ttl,
        sweep_interval: Duration::from_secs(1),
        ..InMemoryOptions::default()
    }
}

async fn started(bridge: Result<InMemoryStreamBridge, InvalidOption>) -> Arc<dyn StreamBridge> {
    let bridge = bridge.expect("the limits are valid");
    bridge.start().await.expect("it is open");
    Arc::new(bridge)
}

#[async_trait]
impl StreamBridgeFactory for Memory {
    async fn open(&self, limits: TestLimits) -> Arc<dyn StreamBridge> {
        started(InMemoryStreamBridge::new(options(limits))).await
    }

    async fn open_with_log(
        &self,
        limits: TestLimits,
        log: Arc<dyn StreamLog>,
    ) -> Arc<dyn StreamBridge> {
        started(InMemoryStreamBridge::with_log(options(limits), log)).await
    }
}

crate::stream_bridge_contract!(
    [#[tokio::test(start_paused = true)]] Memory
);
