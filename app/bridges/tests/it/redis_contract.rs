//! The Redis bridge meets the stream bridge contract.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use deerflow_bridges::redis::RedisOptions;
use deerflow_runtime::stream_bridge::{StreamBridge, StreamLog};
use deerflow_runtime::testkit::stream_bridge::{StreamBridgeFactory, TestLimits};

use crate::rig::{fresh_prefix, node_with, node_with_log, shared_url};

#[derive(Debug)]
struct Redis;

#[async_trait]
impl StreamBridgeFactory for Redis {
    async fn open(&self, limits: TestLimits) -> Arc<dyn StreamBridge> {
        node_with(options(limits)).await
    }

    async fn open_with_log(
        &self,
        limits: TestLimits,
        log: Arc<dyn StreamLog>,
    ) -> Arc<dyn StreamBridge> {
        node_with_log(options(limits), log).await
    }

    fn unit(&self) -> Duration {
        Duration::from_secs(4)
    }
}

fn options(limits: TestLimits) -> RedisOptions {
    RedisOptions {
        key_prefix: fresh_prefix(),
        max_events: limits.max_events,
        stalled_subscriber_timeout: limits.stalled_subscriber_timeout,
        idle_stream_ttl: limits.idle_stream_ttl,
        poll_interval: Duration::from_millis(500),
        ..RedisOptions::at(shared_url())
    }
}

deerflow_runtime::stream_bridge_contract!(
    [
        #[tokio::test]
        #[ignore = "needs DEERFLOW_TEST_REDIS_URL; make test-external runs it"]
    ]
    Redis
);
