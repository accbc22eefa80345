//! The contract of a stream bridge.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::BoxStream;

use super::{
    BridgeError, EventData, EventId, EventName, ResumeFrom, ResumeResult, StreamItem, StreamKey,
    TerminalKind,
};
use crate::ids::RunId;

/// A subscriber's view of a run.
pub struct Subscription {
    /// What the subscription begins with.
    pub resume: ResumeResult,
    /// Replay, then live events, heartbeats between them; ends after `End`, `Gap` or `Aborted`.
    pub items: BoxStream<'static, StreamItem>,
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription")
            .field("resume", &self.resume)
            .finish_non_exhaustive()
    }
}

/// Carries a run's events to any number of viewers. What an implementation promises (S1 to S15 of the reliability contract):
///
/// - Order and no holes: sequence numbers rise by exactly one; a viewer that would miss some gets a gap, then nothing.
/// - Replay: after cursor x comes x+1, whenever the viewer arrives, while the run lives and for the retention after it.
/// - A publish is in the log before any viewer sees it, and is refused from an attempt that was superseded.
/// - Exactly one terminal item, always last; after it, publishing is refused.
/// - A viewer never slows the producer: it is cut ([`StreamItem::Aborted`]) when it makes no progress, and may resume.
/// - [`StreamBridge::close`] is not an end: live streams are aborted.
#[async_trait]
pub trait StreamBridge: Send + Sync + fmt::Debug {
    /// Appends an event and returns its id. The first publish of a higher attempt fences off the lower ones.
    async fn publish(
        &self,
        key: &StreamKey,
        event: EventName,
        data: EventData,
    ) -> Result<EventId, BridgeError>;

    /// Ends the stream normally. The same as [`StreamBridge::publish_terminal`] with [`TerminalKind::End`] and no data.
    async fn publish_end(&self, key: &StreamKey) -> Result<(), BridgeError> {
        self.publish_terminal(key, TerminalKind::End, None).await
    }

    /// Ends the stream. With data, an `error` event goes before the end. The second call is [`BridgeError::Ended`].
    async fn publish_terminal(
        &self,
        key: &StreamKey,
        kind: TerminalKind,
        data: Option<Bytes>,
    ) -> Result<(), BridgeError>;

    /// Follows a run. Never waits for the producer; an unknown run gives [`ResumeResult::Unknown`] and an empty stream. A cursor
    /// outside what is kept gives a gap; a cursor of an attempt that lost its place there resumes where the newer one began.
    /// A heartbeat of zero means none.
    async fn subscribe(
        &self,
        run_id: &RunId,
        from: ResumeFrom,
        heartbeat: Duration,
    ) -> Result<Subscription, BridgeError>;

    /// Forgets the run's events after `delay`, but not before its end. Viewers under way keep what they have. Idempotent.
    async fn cleanup(&self, run_id: &RunId, delay: Duration);

    /// Ends the stream as cancelled if it has not ended, even if nothing was ever published: for runs that never started.
    /// Idempotent.
    async fn cancel(&self, run_id: &RunId);

    /// The run waits for a person: limits on silence do not count until the next publish.
    async fn mark_awaiting_input(&self, run_id: &RunId);

    /// Whether events reach other processes now; nothing to ask where there are none.
    async fn ping(&self) -> Result<(), BridgeError> {
        Ok(())
    }

    /// Begins background work.
    async fn start(&self) -> Result<(), BridgeError>;

    /// Aborts every viewer and refuses all else from now on.
    async fn close(&self);
}
