//! One viewer's way through a run's log.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use crate::runtime::stream_bridge::{
    EventId, Gap, HEARTBEAT_SENTINEL, Heartbeat, Listener, ResumeFrom, StreamEvent, StreamItem,
    StreamLog,
};
use futures_util::Stream;
use futures_util::future::BoxFuture;
use tokio::time::Instant;

use super::Inner;
use super::log::{Entry, Read, RunLog};
use super::spill::page;

/// Replays a log from a place in it, then follows it. Gives everything that is ready without yielding in between.
///
/// A viewer is not known to the log: one that is not polled costs its producer nothing. Whether it stalled is decided when it is
/// polled again, from when the waiting event was published and when it was polled before.
pub(super) struct Viewer {
    log: Arc<RunLog>,
    closed: Arc<AtomicBool>,
    changes: Listener,
    durable: Option<Arc<dyn StreamLog>>,
    /// Events that only the durable log has.
    page: Option<BoxFuture<'static, Result<Vec<StreamEvent>, Gap>>>,
    /// Taken from the log, not yet given.
    batch: VecDeque<Entry>,
    /// What the next batch begins with.
    next_seq: u64,
    last: Option<EventId>,
    stalled_after: Duration,
    polled_at: Instant,
    heartbeat: Option<Heartbeat>,
    done: bool,
}

impl Viewer {
    /// A viewer that begins with sequence number `next_seq`. A heartbeat of zero means none.
    pub(super) fn new(
        log: Arc<RunLog>,
        bridge: &Inner,
        from: ResumeFrom,
        next_seq: u64,
        heartbeat: Duration,
    ) -> Self {
        let now = Instant::now();
        let last = match from {
            ResumeFrom::After(id) => Some(id),
            ResumeFrom::Start | ResumeFrom::Tail => None,
        };
        Self {
            closed: bridge.closed.clone(),
            changes: log.viewers().listen(),
            log,
            durable: bridge.durable.clone(),
            page: None,
            batch: VecDeque::new(),
            next_seq,
            last,
            stalled_after: bridge.options.stalled_subscriber_timeout,
            polled_at: now,
            heartbeat: Heartbeat::every(heartbeat),
            done: false,
        }
    }

    fn give(&mut self, entry: Entry, now: Instant) -> StreamItem {
        self.last = Some(entry.event.id);
        if let Some(heartbeat) = &mut self.heartbeat {
            heartbeat.put_off(now);
        }
        StreamItem::Event(entry.event)
    }

    fn finish(&mut self, item: StreamItem) -> Poll<Option<StreamItem>> {
        self.done = true;
        self.batch.clear();
        self.page = None;
        Poll::Ready(Some(item))
    }
}

impl Stream for Viewer {
    type Item = StreamItem;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<StreamItem>> {
        let this = &mut *self;
        if this.done {
            return Poll::Ready(None);
        }
        let now = Instant::now();
        let polled_before = std::mem::replace(&mut this.polled_at, now);
        loop {
            if this.closed.load(Ordering::Acquire) {
                return this.finish(StreamItem::Aborted);
            }
            if let Some(entry) = this.batch.pop_front() {
                if now.saturating_duration_since(polled_before.max(entry.at)) >= this.stalled_after
                {
                    return this.finish(StreamItem::Aborted);
                }
                return Poll::Ready(Some(this.give(entry, now)));
            }
            let read = match &mut this.page {
                None => this.log.read(this.next_seq, this.last, &mut this.batch),
                Some(page) => match page.as_mut().poll(cx) {
                    Poll::Pending => Read::Nothing,
                    Poll::Ready(Err(gap)) => return this.finish(StreamItem::Gap(gap)),
                    Poll::Ready(Ok(events)) => {
                        this.page = None;
                        let at = Instant::now();
                        this.batch
                            .extend(events.into_iter().map(|event| Entry { event, at }));
                        Read::Events
                    }
                },
            };
            match read {
                Read::Events => this.next_seq += this.batch.len() as u64,
                Read::Ended(kind) => return this.finish(StreamItem::End(kind)),
                Read::Gap(gap) => match &this.durable {
                    Some(durable) => {
                        this.page = Some(Box::pin(page(
                            durable.clone(),
                            this.log.run_id().clone(),
                            this.next_seq,
                            gap,
                        )))
                    }
                    None => return this.finish(StreamItem::Gap(gap)),
                },
                Read::Abandoned => return this.finish(StreamItem::Aborted),
                // Heard of since before the log was read, so no change is missed in between.
                Read::Nothing if this.changes.poll_change(cx).is_ready() => {}
                Read::Nothing => {
                    return match &mut this.heartbeat {
                        Some(heartbeat) => heartbeat.poll(cx).map(|()| Some(HEARTBEAT_SENTINEL)),
                        None => Poll::Pending,
                    };
                }
            }
        }
    }
}
