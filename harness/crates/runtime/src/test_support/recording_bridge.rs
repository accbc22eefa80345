//! Stream bridge for tests. It records how streams end, and fails on request.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use parking_lot::Mutex;

use crate::stream_bridge::{
    BridgeError, EventData, EventId, EventName, ResumeFrom, StreamBridge, StreamKey, Subscription,
    TerminalKind,
};
use deerflow_core::ids::RunId;

/// Wrapper that records calls to another bridge.
#[derive(Debug)]
pub(crate) struct RecordingBridge {
    bridge: Arc<dyn StreamBridge>,
    /// Ends of streams, in order.
    pub(crate) ends: Mutex<Vec<String>>,
    /// If set, calls that end a stream never return.
    pub(crate) blocks_terminal: AtomicBool,
    /// If set, the next call that publishes an end panics.
    pub(crate) panics_at_terminal: AtomicBool,
    /// Number of subscriptions that will be rejected.
    pub(crate) rejected_subscribes: AtomicU32,
}

impl RecordingBridge {
    pub(crate) fn over(bridge: Arc<dyn StreamBridge>) -> Arc<Self> {
        Arc::new(Self {
            bridge,
            ends: Mutex::default(),
            blocks_terminal: AtomicBool::new(false),
            panics_at_terminal: AtomicBool::new(false),
            rejected_subscribes: AtomicU32::new(0),
        })
    }

    async fn record_end(&self, end: String) {
        self.ends.lock().push(end);
        if self.blocks_terminal.load(Ordering::Relaxed) {
            std::future::pending().await
        }
    }
}

#[async_trait]
impl StreamBridge for RecordingBridge {
    async fn publish(
        &self,
        key: &StreamKey,
        event: EventName,
        data: EventData,
    ) -> Result<EventId, BridgeError> {
        self.bridge.publish(key, event, data).await
    }

    async fn publish_terminal(
        &self,
        key: &StreamKey,
        kind: TerminalKind,
        data: Option<Bytes>,
    ) -> Result<(), BridgeError> {
        self.record_end(format!("{kind:?} by attempt {}", key.attempt))
            .await;
        assert!(
            !self.panics_at_terminal.swap(false, Ordering::Relaxed),
            "boom"
        );
        self.bridge.publish_terminal(key, kind, data).await
    }

    async fn subscribe(
        &self,
        run_id: &RunId,
        from: ResumeFrom,
        heartbeat: Duration,
    ) -> Result<Subscription, BridgeError> {
        let remaining = self.rejected_subscribes.load(Ordering::Relaxed);
        if remaining > 0 {
            self.rejected_subscribes
                .store(remaining - 1, Ordering::Relaxed);
            return Err(BridgeError::Transport("away".to_owned()));
        }
        self.bridge.subscribe(run_id, from, heartbeat).await
    }

    async fn cleanup(&self, run_id: &RunId, delay: Duration) {
        self.bridge.cleanup(run_id, delay).await;
    }

    async fn cancel(&self, run_id: &RunId) {
        self.record_end("cancelled".to_owned()).await;
        self.bridge.cancel(run_id).await;
    }

    async fn mark_awaiting_input(&self, run_id: &RunId) {
        self.bridge.mark_awaiting_input(run_id).await;
    }

    async fn start(&self) -> Result<(), BridgeError> {
        self.bridge.start().await
    }

    async fn close(&self) {
        self.bridge.close().await;
    }
}
