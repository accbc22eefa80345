//! Ends a stream without a terminal event according to the status in the store. Used for runs that
//! other processes execute.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures_util::future::{self, BoxFuture};
use futures_util::stream::{self, BoxStream};
use futures_util::{FutureExt, StreamExt};
use tokio::time::Instant;

use super::resubscribe::{RESUBSCRIBE_TIMEOUT, subscribe_with_retry};
use crate::definition::RunRecord;
use crate::encoding::error_frame;
use crate::kernel::StatusPoller;
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
    let fallback = FallbackStream {
        items,
        from,
        poller,
        bridge,
        detached,
        silence: None,
        last: last_seen(from),
        ended_in_store: false,
        resubscribed: false,
    };
    stream::unfold(Some(fallback), |fallback| async { fallback?.next().await })
        .flat_map(stream::iter)
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
}

impl FallbackStream {
    async fn next(mut self) -> Option<(Vec<StreamItem>, Option<Self>)> {
        loop {
            let is_attached = self.silence.is_none();
            let silence = poll_fn(|cx| {
                self.silence
                    .as_mut()
                    .map_or(Poll::Pending, |silence| silence.poll(cx))
            });
            tokio::select! {
                biased;
                item = self.items.next() => {
                    let item = item?;
                    if let StreamItem::Event(event) = &item {
                        self.last = Some(event.id);
                        self.ended_in_store = false;
                        self.silence.iter_mut().for_each(|silence| silence.put_off(Instant::now()));
                    }
                    return Some((vec![item], Some(self)));
                }
                () = &mut self.detached, if is_attached => self.silence = Heartbeat::every(SILENCE),
                () = silence => match self.poller.cached_within(MAX_STATUS_AGE).await {
                    Ok(Some(run)) => {
                        let ended_in_store = terminal_of(&run).is_some();
                        if ended_in_store && self.ended_in_store && !self.resubscribe().await {
                            // The last events of the owner may never have reached the bridge.
                            return Some((synthesized_tail(&run, self.last, true), None));
                        }
                        self.ended_in_store = ended_in_store;
                    }
                    Ok(None) if self.ended_in_store => return Some((vec![StreamItem::Aborted], None)),
                    Ok(None) => self.ended_in_store = true,
                    Err(error) => tracing::warn!(
                        run_id = %self.poller.run_id(), %error,
                        "cannot read the status of a silent run"
                    ),
                },
            }
        }
    }

    /// Reads the remaining events of an ended run from the bridge, once: they may only have been
    /// delayed.
    async fn resubscribe(&mut self) -> bool {
        if std::mem::replace(&mut self.resubscribed, true) {
            return false;
        }
        let from = self.last.map_or(self.from, ResumeFrom::After);
        match subscribe_with_retry(&self.poller, from, Duration::ZERO, &*self.bridge).await {
            Ok(Subscription {
                resume: ResumeResult::Ended(_),
                items,
            }) => {
                self.items = items;
                // The read may take as long as an outage of the bridge.
                self.silence = Heartbeat::every(RESUBSCRIBE_TIMEOUT);
                true
            }
            Ok(_) => false,
            Err(error) => {
                tracing::warn!(
                    run_id = %self.poller.run_id(), %error,
                    "cannot read the last events of a run"
                );
                false
            }
        }
    }
}

#[cfg(test)]
#[path = "terminal_fallback_tests.rs"]
mod tests;
