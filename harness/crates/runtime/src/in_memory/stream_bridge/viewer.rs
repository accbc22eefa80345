//! A viewer that reads a run's log.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use crate::stream_bridge::{
    EventId, Gap, HEARTBEAT_SENTINEL, Heartbeat, Listener, ResumeFrom, StreamEvent, StreamItem,
    StreamLog,
};
use futures_util::Stream;
use futures_util::future::BoxFuture;
use tokio::time::Instant;

use super::burst::Burst;
use super::entry::Entry;
use super::log::{ReadResult, RunLog};
use super::shared::Shared;
use super::spill::page;

/// Number of events for which a viewer that waits has room.
const WAITING_CAPACITY: usize = 4;

/// Replays a log from a position, then follows it. Returns all available events without yielding to
/// the scheduler in between.
///
/// A viewer is not registered with the log, so an unpolled viewer adds no work to its producer.
/// Its next poll decides if it has stalled, from the publish time of the unread event and the time
/// of the previous poll.
pub(super) struct Viewer {
    log: Arc<RunLog>,
    closed: Arc<AtomicBool>,
    changes: Listener,
    urgent_changes: Listener,
    burst: Burst,
    durable: Option<Arc<dyn StreamLog>>,
    /// Read of events that only the durable log has.
    page: Option<BoxFuture<'static, Result<Vec<StreamEvent>, Gap>>>,
    /// Events that were taken from the log and not returned yet.
    batch: VecDeque<Entry>,
    /// First sequence number of the next batch.
    next_seq: u64,
    last: Option<EventId>,
    stalled_after: Duration,
    polled_at: Instant,
    heartbeat: Option<Heartbeat>,
    done: bool,
}

impl Viewer {
    /// Creates a viewer that starts at sequence number `next_seq`. A heartbeat of zero disables
    /// heartbeats.
    pub(super) fn new(
        log: Arc<RunLog>,
        bridge: &Shared,
        from: ResumeFrom,
        next_seq: u64,
        heartbeat: Duration,
    ) -> Self {
        let now = Instant::now();
        let last = match from {
            ResumeFrom::After(id) => Some(id),
            ResumeFrom::Start | ResumeFrom::Tail => None,
        };
        let [changes, urgent_changes] = log.listen();
        Self {
            closed: bridge.closed.clone(),
            changes,
            urgent_changes,
            burst: Burst::new(next_seq, now),
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

    fn emit(&mut self, entry: Entry, now: Instant) -> StreamItem {
        self.last = Some(entry.event.id);
        if let Some(heartbeat) = &mut self.heartbeat {
            heartbeat.put_off(now);
        }
        StreamItem::Event(entry.event)
    }

    /// `true` if the events of a burst are to be read later. The task is woken then.
    fn is_paused(&mut self, cx: &mut Context<'_>) -> bool {
        if !self.burst.is_paused() {
            return false;
        }
        if self.urgent_changes.poll_change(cx).is_ready() {
            self.burst.end_pause();
            return false;
        }
        self.burst.poll_pause(cx).is_pending()
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
                return Poll::Ready(Some(this.emit(entry, now)));
            }
            if this.is_paused(cx) {
                return Poll::Pending;
            }
            let read = match &mut this.page {
                None => this.log.read(this.next_seq, this.last, &mut this.batch),
                Some(page) => match page.as_mut().poll(cx) {
                    Poll::Pending => ReadResult::NoEvents,
                    Poll::Ready(Err(gap)) => return this.finish(StreamItem::Gap(gap)),
                    Poll::Ready(Ok(events)) => {
                        this.page = None;
                        let at = Instant::now();
                        this.batch
                            .extend(events.into_iter().map(|event| Entry { event, at }));
                        ReadResult::Events
                    }
                },
            };
            match read {
                ReadResult::Events => this.next_seq += this.batch.len() as u64,
                ReadResult::Ended(kind) => return this.finish(StreamItem::End(kind)),
                ReadResult::Gap(gap) => match &this.durable {
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
                ReadResult::Abandoned => return this.finish(StreamItem::Aborted),
                ReadResult::NoEvents
                    if this.page.is_none() && this.burst.pause_after_read(this.next_seq, now) => {}
                // Polled after the read, so no change in between is missed.
                ReadResult::NoEvents if this.changes.poll_change(cx).is_ready() => {}
                ReadResult::NoEvents => {
                    // A waiting viewer needs no room for the events of a burst.
                    this.batch.shrink_to(WAITING_CAPACITY);
                    return match &mut this.heartbeat {
                        Some(heartbeat) => heartbeat.poll(cx).map(|()| Some(HEARTBEAT_SENTINEL)),
                        None => Poll::Pending,
                    };
                }
            }
        }
    }
}
