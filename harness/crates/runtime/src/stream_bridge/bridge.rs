//! Contract of a stream bridge.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::BoxStream;

use super::{
    BridgeError, EventData, EventId, EventName, ResumeFrom, ResumeResult, StreamItem, StreamKey,
    TerminalKind,
};
use deerflow_core::ids::RunId;

/// A subscriber's view of a run.
pub struct Subscription {
    /// Position at which the subscription starts, or the reason why it has no events.
    pub resume: ResumeResult,
    /// Replayed events, then live events with heartbeats in between. The stream ends after `End`,
    /// `Gap` or `Aborted`.
    pub items: BoxStream<'static, StreamItem>,
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription")
            .field("resume", &self.resume)
            .finish_non_exhaustive()
    }
}

/// Carries the events of runs to any number of viewers. Guarantees of every implementation, each
/// tested by `testkit::stream_bridge`:
///
/// - Order without holes: sequence numbers increase by exactly one. A viewer that would miss events
///   gets a gap as its last item.
/// - Replay: a viewer with cursor x gets x+1 next, whenever it subscribes, while the run is active
///   and during the retention after it.
/// - A published event is stored before any viewer receives it. A publish of a superseded attempt
///   is rejected.
/// - Exactly one terminal item, always last. Publishing after it is rejected.
/// - A viewer never slows the producer. A viewer that makes no progress is disconnected
///   ([`StreamItem::Aborted`]) and may resume.
/// - [`StreamBridge::close`] is not an end: live streams are aborted.
///
/// ```
/// use std::time::Duration;
///
/// use bytes::Bytes;
/// use deerflow_core::ids::RunId;
/// use deerflow_runtime::in_memory::{InMemoryOptions, InMemoryStreamBridge};
/// use deerflow_runtime::stream_bridge::{ResumeFrom, StreamBridge, StreamItem, StreamKey};
/// use futures_util::StreamExt;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let bridge = InMemoryStreamBridge::new(InMemoryOptions::default())?;
/// bridge.start().await?;
/// let key = StreamKey { run_id: RunId::parse("r1")?, attempt: 1 };
/// bridge.publish(&key, "values".into(), Bytes::from_static(b"{}").into()).await?;
/// bridge.publish_end(&key).await?;
///
/// let viewer = bridge.subscribe(&key.run_id, ResumeFrom::Start, Duration::ZERO).await?;
/// let items: Vec<StreamItem> = viewer.items.collect().await;
/// assert!(matches!(&items[..], [StreamItem::Event(_), StreamItem::End(_)]));
/// # Ok(())
/// # }
/// ```
#[async_trait]
pub trait StreamBridge: Send + Sync + fmt::Debug {
    /// Appends an event and returns its id. The first publish of a higher attempt fences off all
    /// lower attempts.
    async fn publish(
        &self,
        key: &StreamKey,
        event: EventName,
        data: EventData,
    ) -> Result<EventId, BridgeError>;

    /// Ends the stream normally. Same as [`StreamBridge::publish_terminal`] with
    /// [`TerminalKind::End`] and no data.
    async fn publish_end(&self, key: &StreamKey) -> Result<(), BridgeError> {
        self.publish_terminal(key, TerminalKind::End, None).await
    }

    /// Ends the stream. With data, an `error` event precedes the end. A second call returns
    /// [`BridgeError::Ended`].
    async fn publish_terminal(
        &self,
        key: &StreamKey,
        kind: TerminalKind,
        data: Option<Bytes>,
    ) -> Result<(), BridgeError>;

    /// Subscribes to a run. Never waits for the producer; an unknown run yields
    /// [`ResumeResult::Unknown`] and an empty stream. A cursor outside the retained events yields a
    /// gap. A cursor of a superseded attempt resumes where the newer attempt began. A heartbeat of
    /// zero disables heartbeats.
    async fn subscribe(
        &self,
        run_id: &RunId,
        from: ResumeFrom,
        heartbeat: Duration,
    ) -> Result<Subscription, BridgeError>;

    /// Removes the events of the run after `delay`, but not before the run has ended. Existing
    /// subscriptions are not affected. Idempotent.
    async fn cleanup(&self, run_id: &RunId, delay: Duration);

    /// Ends the stream as cancelled unless it has ended, even if no event was published, for runs
    /// that never started. Idempotent.
    async fn cancel(&self, run_id: &RunId);

    /// Marks the run as waiting for user input: the idle limit is suspended until the next publish.
    async fn mark_awaiting_input(&self, run_id: &RunId);

    /// Checks that events reach other processes. Always succeeds for a bridge of a single process.
    async fn ping(&self) -> Result<(), BridgeError> {
        Ok(())
    }

    /// Starts background work.
    async fn start(&self) -> Result<(), BridgeError>;

    /// Aborts every viewer and rejects all later calls.
    async fn close(&self);
}
