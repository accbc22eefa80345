//! Ends a stream without a terminal event according to the status in the store. Used for runs that
//! other processes execute.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use std::vec;

use futures_util::future::{self, BoxFuture};
use futures_util::stream::BoxStream;
use futures_util::{FutureExt, Stream, StreamExt};
use tokio::time::Instant;

use super::resubscribe::{RESUBSCRIBE_TIMEOUT, subscribe_with_retry};
use crate::definition::RunRecord;
use crate::encoding::error_frame;
use crate::kernel::{StatusPoller, StatusResult};
use crate::stream_bridge::{
    EventId, Gap, Heartbeat, ResumeFrom, ResumeResult, StreamBridge, StreamEvent, StreamItem,
    Subscription, TerminalKind,
};
use crate::termination::terminal_of;

/// Time without an event after which the store is polled. A stored end is used only at the second
/// poll, so that an end event in flight through the bridge arrives first.
const SILENCE: Duration = Duration::from_secs(2);
/// Maximum age of a cached status. The streams of a run become silent at the same time, and their
/// polls share one read.
const MAX_STATUS_AGE: Duration = Duration::from_secs(1);

/// Builds the last items of an ended run whose events after `last` are unavailable, with a gap
/// before them if `gap` is set. The stream of an active run is aborted, so that the client
/// reconnects.
pub(crate) fn synthesized_tail(
    record: &RunRecord,
    last: Option<EventId>,
    gap: bool,
) -> Vec<StreamItem> {
    let Some(kind) = terminal_of(record) else {
        return vec![StreamItem::Aborted];
    };
    let id = EventId {
        seq: last.map_or(0, |last| last.seq) + 1,
        attempt: record.attempt,
    };
    let mut items = Vec::new();
    if gap {
        items.push(StreamItem::Gap(Gap::new(&record.run_id, last, id, id)));
    }
    if kind == TerminalKind::Error {
        let data = error_frame(
            record.error_name(),
            record.error.as_deref().unwrap_or("the run failed"),
        )
        .data;
        items.push(StreamItem::Event(StreamEvent {
            id,
            event: "error".into(),
            data,
        }));
    }
    items.push(StreamItem::End(kind));
    items
}

/// Adds a fallback to `items`: if the run has ended in the store and no event arrives for
/// [`SILENCE`], the stream ends.
pub(crate) fn with_store_fallback(
    items: BoxStream<'static, StreamItem>,
    from: ResumeFrom,
    poller: Arc<StatusPoller>,
    bridge: Arc<dyn StreamBridge>,
) -> BoxStream<'static, StreamItem> {
    with_store_fallback_after(future::ready(()).boxed(), items, from, poller, bridge)
}

/// Adds the fallback of [`with_store_fallback`] to a run that is executed here. The fallback is
/// used only after `detached` has resolved.
pub(crate) fn with_store_fallback_after(
    detached: BoxFuture<'static, ()>,
    items: BoxStream<'static, StreamItem>,
    from: ResumeFrom,
    poller: Arc<StatusPoller>,
    bridge: Arc<dyn StreamBridge>,
) -> BoxStream<'static, StreamItem> {
    FallbackStream {
        items,
        from,
        poller,
        bridge,
        detached,
        silence: None,
        last: last_seen(from),
        ended_in_store: false,
        resubscribed: false,
        lookup: None,
        tail: None,
    }
    .boxed()
}

/// Returns the last event that the subscriber has received.
pub(crate) fn last_seen(from: ResumeFrom) -> Option<EventId> {
    match from {
        ResumeFrom::After(id) => Some(id),
        ResumeFrom::Start | ResumeFrom::Tail => None,
    }
}

struct FallbackStream {
    items: BoxStream<'static, StreamItem>,
    from: ResumeFrom,
    poller: Arc<StatusPoller>,
    bridge: Arc<dyn StreamBridge>,
    detached: BoxFuture<'static, ()>,
    /// `None` until the run is detached.
    silence: Option<Heartbeat>,
    last: Option<EventId>,
    /// `true` if the run had ended at the last poll.
    ended_in_store: bool,
    /// `true` if the events after `last` were requested from the bridge again.
    resubscribed: bool,
    /// Lookup after a silence. No item is read during it.
    lookup: Option<BoxFuture<'static, Lookup>>,
    /// Last items, without those of the bridge.
    tail: Option<vec::IntoIter<StreamItem>>,
}

/// Result of a lookup.
enum Lookup {
    /// The run as it is stored.
    Stored(StatusResult),
    /// The remaining events of this ended run, if the bridge has them.
    Remaining(Arc<RunRecord>, Option<BoxStream<'static, StreamItem>>),
}

impl Stream for FallbackStream {
    type Item = StreamItem;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<StreamItem>> {
        let this = self.get_mut();
        loop {
            if let Some(tail) = &mut this.tail {
                return Poll::Ready(tail.next());
            }
            if let Some(lookup) = &mut this.lookup {
                let found = ready!(lookup.as_mut().poll(cx));
                this.lookup = None;
                this.apply(found);
                continue;
            }
            if let Poll::Ready(item) = this.items.poll_next_unpin(cx) {
                if let Some(StreamItem::Event(event)) = &item {
                    this.on_event(event.id);
                }
                return Poll::Ready(item);
            }
            match &mut this.silence {
                None => {
                    ready!(this.detached.as_mut().poll(cx));
                    this.silence = Heartbeat::every(SILENCE);
                }
                Some(silence) => {
                    ready!(silence.poll(cx));
                    let poller = this.poller.clone();
                    let stored =
                        async move { Lookup::Stored(poller.cached_within(MAX_STATUS_AGE).await) };
                    this.lookup = Some(stored.boxed());
                }
            }
        }
    }
}

impl FallbackStream {
    fn on_event(&mut self, id: EventId) {
        self.last = Some(id);
        self.ended_in_store = false;
        if let Some(silence) = &mut self.silence {
            silence.put_off(Instant::now());
        }
    }

    fn apply(&mut self, found: Lookup) {
        match found {
            Lookup::Stored(Ok(Some(run))) => {
                let was_ended = self.ended_in_store;
                self.ended_in_store = terminal_of(&run).is_some();
                let is_over = was_ended && self.ended_in_store;
                if is_over && std::mem::replace(&mut self.resubscribed, true) {
                    self.end_with(synthesized_tail(&run, self.last, true));
                } else if is_over {
                    self.lookup = Some(self.remaining(run).boxed());
                }
            }
            Lookup::Stored(Ok(None)) if self.ended_in_store => {
                self.end_with(vec![StreamItem::Aborted])
            }
            Lookup::Stored(Ok(None)) => self.ended_in_store = true,
            Lookup::Stored(Err(error)) => tracing::warn!(
                run_id = %self.poller.run_id(), %error,
                "cannot read the status of a silent run"
            ),
            Lookup::Remaining(_, Some(items)) => {
                self.items = items;
                // The read may take as long as an outage of the bridge.
                self.silence = Heartbeat::every(RESUBSCRIBE_TIMEOUT);
            }
            // The last events of the owner may never have reached the bridge.
            Lookup::Remaining(run, None) => {
                self.end_with(synthesized_tail(&run, self.last, true));
            }
        }
    }

    fn end_with(&mut self, items: Vec<StreamItem>) {
        self.tail = Some(items.into_iter());
    }

    /// Reads the remaining events of an ended run from the bridge, once: they may only have been
    /// delayed.
    fn remaining(&self, run: Arc<RunRecord>) -> impl Future<Output = Lookup> + Send + use<> {
        let from = self.last.map_or(self.from, ResumeFrom::After);
        let (poller, bridge) = (self.poller.clone(), self.bridge.clone());
        async move {
            let items = match subscribe_with_retry(&poller, from, Duration::ZERO, &*bridge).await {
                Ok(Subscription {
                    resume: ResumeResult::Ended(_),
                    items,
                }) => Some(items),
                Ok(_) => None,
                Err(error) => {
                    tracing::warn!(
                        run_id = %poller.run_id(), %error,
                        "cannot read the last events of a run"
                    );
                    None
                }
            };
            Lookup::Remaining(run, items)
        }
    }
}

#[cfg(test)]
#[path = "terminal_fallback_tests.rs"]
mod tests;
