//! Stream bridge of one node with injected faults: calls are sometimes slow, and subscriptions
//! sometimes fail. Published events are available to all nodes, as with an external bridge.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use tokio::time::sleep;

use super::world::World;
use crate::ids::RunId;
use crate::runtime::in_memory::InMemoryStreamBridge;
use crate::runtime::process::Process;
use crate::runtime::stream_bridge::{
    BridgeError, EventData, EventId, EventName, ResumeFrom, StreamBridge, StreamKey, Subscription,
    TerminalKind,
};

/// Connection of one node to the bridge.
#[derive(Debug)]
pub(super) struct FaultyBridge {
    pub(super) bridge: Arc<InMemoryStreamBridge>,
    pub(super) world: Arc<World>,
    pub(super) process: Process,
    pub(super) name: String,
}

impl FaultyBridge {
    async fn pause(&self, what: &str) {
        let chance = &self.world.chance;
        if !self.world.faults_enabled() {
            return;
        }
        match chance.below(1_000) {
            0..30 => sleep(chance.millis(1, 60)).await,
            30..32 => {
                self.world
                    .record_fault(&self.name, format_args!("dies at {what}"));
                self.process.kill();
                std::future::pending().await
            }
            _ => {}
        }
    }
}

#[async_trait]
impl StreamBridge for FaultyBridge {
    async fn publish(
        &self,
        key: &StreamKey,
        event: EventName,
        data: EventData,
    ) -> Result<EventId, BridgeError> {
        self.pause("publish").await;
        self.bridge.publish(key, event, data).await
    }

    async fn publish_terminal(
        &self,
        key: &StreamKey,
        kind: TerminalKind,
        data: Option<Bytes>,
    ) -> Result<(), BridgeError> {
        self.pause("an end").await;
        let published = self.bridge.publish_terminal(key, kind, data).await;
        self.world.log_event(
            &self.name,
            format_args!(
                "publishes {kind:?} of {}/{}: {published:?}",
                key.run_id, key.attempt
            ),
        );
        self.pause("an end that is published").await;
        published
    }

    async fn subscribe(
        &self,
        run_id: &RunId,
        from: ResumeFrom,
        heartbeat: Duration,
    ) -> Result<Subscription, BridgeError> {
        self.pause("subscribe").await;
        if self.world.faults_enabled() && self.world.chance.of_thousand(20) {
            self.world.record_fault(&self.name, "cannot subscribe");
            return Err(BridgeError::Transport("the connection failed".to_owned()));
        }
        self.bridge.subscribe(run_id, from, heartbeat).await
    }

    async fn cleanup(&self, run_id: &RunId, delay: Duration) {
        self.bridge.cleanup(run_id, delay).await;
    }

    async fn cancel(&self, run_id: &RunId) {
        self.bridge.cancel(run_id).await;
    }

    async fn mark_awaiting_input(&self, run_id: &RunId) {
        self.bridge.mark_awaiting_input(run_id).await;
    }

    async fn start(&self) -> Result<(), BridgeError> {
        self.bridge.start().await
    }

    /// The bridge stays open for the other nodes.
    async fn close(&self) {}
}
