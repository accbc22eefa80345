//! A stream bridge for tests: it writes down how streams are ended, and is out of order as it is told.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use parking_lot::Mutex;

use crate::ids::RunId;
use crate::runtime::stream_bridge::{
    BridgeError, EventData, EventId, EventName, ResumeFrom, StreamBridge, StreamKey, Subscription,
    TerminalKind,
};

/// Another bridge, watched.
#[derive(Debug)]
pub(super) struct WatchedBridge {
    bridge: Arc<dyn StreamBridge>,
    /// How streams were ended, in order.
    pub(super) ends: Mutex<Vec<String>>,
    /// Ends reach nobody, for ever.
    pub(super) hangs: AtomicBool,
    /// As many viewers are sent away.
    pub(super) sends_away: AtomicU32,
}

impl WatchedBridge {
    pub(super) fn over(bridge: Arc<dyn StreamBridge>) -> Arc<Self> {
        Arc::new(Self {
            bridge,
            ends: Mutex::default(),
            hangs: AtomicBool::new(false),
            sends_away: AtomicU32::new(0),
        })
    }

    async fn note(&self, end: String) {
        self.ends.lock().push(end);
        if self.hangs.load(Ordering::Relaxed) {
            std::future::pending().await
        }
    }
}

#[async_trait]
impl StreamBridge for WatchedBridge {
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
        self.note(format!("{kind:?} by attempt {}", key.attempt))
            .await;
        self.bridge.publish_terminal(key, kind, data).await
    }

    async fn subscribe(
        &self,
        run_id: &RunId,
        from: ResumeFrom,
        heartbeat: Duration,
    ) -> Result<Subscription, BridgeError> {
        let left = self.sends_away.load(Ordering::Relaxed);
        if left > 0 {
            self.sends_away.store(left - 1, Ordering::Relaxed);
            return Err(BridgeError::Transport("away".to_owned()));
        }
        self.bridge.subscribe(run_id, from, heartbeat).await
    }

    async fn cleanup(&self, run_id: &RunId, delay: Duration) {
        self.bridge.cleanup(run_id, delay).await;
    }

    async fn cancel(&self, run_id: &RunId) {
        self.note("cancelled".to_owned()).await;
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
