//! A viewer of one run's stream: reads old events from the server, and newer ones from the log that
//! its node shares.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use deerflow_core::ids::RunId;
use deerflow_runtime::runs::store::StoreError;
use deerflow_runtime::stream_bridge::{
    EventId, Gap, HEARTBEAT_SENTINEL, Heartbeat, Listener, LogOutline, LogPage, ResumeFrom,
    StreamEvent, StreamItem, StreamLog,
};
use futures_util::Stream;
use futures_util::future::BoxFuture;
use tokio::time::{Instant, timeout};

use super::client::StreamClient;
use super::connection::Outage;
use super::options::RedisOptions;
use super::protocol::{ReadRequest, StreamSnapshot};
use super::run_log::{RunLog, StreamPosition, cursor_of};
use super::stream_head::StreamHead;
use super::stream_state::{Entry, ReadOutcome};

/// Time after which a server or log that does not answer counts as unavailable for readers.
const READ_TIMEOUT: Duration = Duration::from_secs(2);
/// Delay between two attempts to read a page.
const RETRY_DELAY: Duration = Duration::from_millis(250);

/// Sources of events: the server and the durable log. Shared by all viewers of a node.
#[derive(Clone)]
pub(super) struct StreamSources {
    pub(super) client: Arc<StreamClient>,
    pub(super) options: Arc<RedisOptions>,
    pub(super) closed: Arc<AtomicBool>,
    /// Log of the events that the server does not have.
    pub(super) durable: Option<Arc<dyn StreamLog>>,
}

impl StreamSources {
    /// Reads streams from the server, with a shorter timeout if there is a durable log.
    pub(super) async fn read_streams(
        &self,
        requests: &[ReadRequest],
    ) -> Result<Vec<StreamSnapshot>, Outage> {
        let snapshot = self.client.read_streams(requests);
        match &self.durable {
            Some(_) => timeout(READ_TIMEOUT, snapshot)
                .await
                .unwrap_or_else(|_| Err(Outage::new("no answer in time"))),
            None => snapshot.await,
        }
    }

    /// Reads one stream.
    pub(super) async fn read_stream(
        &self,
        run_id: &RunId,
        events: Option<(u64, usize)>,
    ) -> Result<StreamSnapshot, Outage> {
        Ok(self
            .read_streams(&[(run_id.clone(), events)])
            .await?
            .pop()
            .unwrap_or_default())
    }

    /// Returns the outline of a run in the durable log; empty without a log.
    pub(super) async fn logged(&self, run_id: &RunId) -> Result<LogOutline, StoreError> {
        let Some(durable) = &self.durable else {
            return Ok(LogOutline::default());
        };
        timeout(READ_TIMEOUT, durable.outline(run_id))
            .await
            .unwrap_or_else(|_| Err(timed_out()))
    }

    /// Returns events of the durable log; none without a log.
    pub(super) async fn logged_page(
        &self,
        run_id: &RunId,
        next: u64,
        count: usize,
    ) -> Result<LogPage, StoreError> {
        let Some(durable) = &self.durable else {
            return Ok(LogPage::default());
        };
        timeout(READ_TIMEOUT, durable.read(run_id, next, count))
            .await
            .unwrap_or_else(|_| Err(timed_out()))
    }
}

fn timed_out() -> StoreError {
    StoreError::Unavailable("the durable log does not answer".to_owned())
}

/// Replays a stream from a position, then follows it. Holds no connection and at most one page of
/// events.
pub(super) struct Viewer {
    sources: StreamSources,
    log: Arc<RunLog>,
    changes: Listener,
    /// Events that were read and not returned yet.
    batch: VecDeque<Entry>,
    page: Option<BoxFuture<'static, Result<Vec<StreamEvent>, Gap>>>,
    /// Sequence number of the next event to read.
    next_seq: u64,
    generation: u32,
    last: Option<EventId>,
    polled_at: Instant,
    heartbeat: Option<Heartbeat>,
    finished: bool,
}

impl Viewer {
    /// Creates a viewer that starts at `position`. A heartbeat of zero means none.
    pub(super) fn new(
        sources: StreamSources,
        log: Arc<RunLog>,
        from: ResumeFrom,
        position: &StreamPosition,
        heartbeat: Duration,
    ) -> Self {
        Self {
            sources,
            changes: log.subscribe_changes(),
            log,
            batch: VecDeque::new(),
            page: None,
            next_seq: position.next,
            generation: position.generation,
            last: cursor_of(from),
            polled_at: Instant::now(),
            heartbeat: Heartbeat::every(heartbeat),
            finished: false,
        }
    }

    /// Returns `true` if `event` continues what this viewer saw: it has the same attempt, or is the
    /// first of a later one.
    fn continues_from_last(&self, event: EventId) -> bool {
        self.last.is_none_or(|last| {
            last.attempt == event.attempt || last.seq == 0 || self.log.begins_with(event)
        })
    }

    fn emit(&mut self, entry: Entry, now: Instant) -> StreamItem {
        self.last = Some(entry.event.id);
        if let Some(heartbeat) = &mut self.heartbeat {
            heartbeat.put_off(now);
        }
        StreamItem::Event(entry.event)
    }

    fn finish(&mut self, item: StreamItem) -> Poll<Option<StreamItem>> {
        self.finished = true;
        self.batch.clear();
        self.page = None;
        Poll::Ready(Some(item))
    }

    fn wait(&mut self, cx: &mut Context<'_>) -> Poll<Option<StreamItem>> {
        match &mut self.heartbeat {
            Some(heartbeat) => heartbeat.poll(cx).map(|()| Some(HEARTBEAT_SENTINEL)),
            None => Poll::Pending,
        }
    }
}

impl Stream for Viewer {
    type Item = StreamItem;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<StreamItem>> {
        let this = &mut *self;
        if this.finished {
            return Poll::Ready(None);
        }
        let now = Instant::now();
        let polled_before = std::mem::replace(&mut this.polled_at, now);
        loop {
            if this.sources.closed.load(Ordering::Acquire) {
                return this.finish(StreamItem::Aborted);
            }
            if let Some(entry) = this.batch.pop_front() {
                if now.saturating_duration_since(polled_before.max(entry.at))
                    >= this.sources.options.stalled_subscriber_timeout
                {
                    return this.finish(StreamItem::Aborted);
                }
                if !this.continues_from_last(entry.event.id) {
                    // The stream was lost, and a later attempt continued from an earlier position
                    // than this viewer's. After a reconnect the viewer gets the events of that
                    // attempt.
                    return this.finish(StreamItem::Aborted);
                }
                return Poll::Ready(Some(this.emit(entry, now)));
            }
            if let Some(page) = &mut this.page {
                match page.as_mut().poll(cx) {
                    Poll::Ready(Ok(events)) => {
                        this.page = None;
                        this.next_seq += events.len() as u64;
                        let at = Instant::now();
                        this.batch
                            .extend(events.into_iter().map(|event| Entry { event, at }));
                        continue;
                    }
                    Poll::Ready(Err(gap)) => return this.finish(StreamItem::Gap(gap)),
                    Poll::Pending => {}
                }
            }
            match this
                .log
                .read(this.next_seq, this.generation, this.last, &mut this.batch)
            {
                ReadOutcome::Events => {
                    this.page = None;
                    this.next_seq += this.batch.len() as u64;
                }
                ReadOutcome::Remote(count) if this.page.is_none() => {
                    let (sources, run_id) = (this.sources.clone(), this.log.run_id().clone());
                    this.page = Some(Box::pin(page(
                        sources,
                        run_id,
                        this.next_seq,
                        this.last,
                        count,
                    )));
                }
                ReadOutcome::Ended(kind) => return this.finish(StreamItem::End(kind)),
                ReadOutcome::Gap(gap) => return this.finish(StreamItem::Gap(gap)),
                ReadOutcome::Abandoned => return this.finish(StreamItem::Aborted),
                // The subscription started before the log was read, so no change between the two is
                // missed.
                ReadOutcome::Nothing | ReadOutcome::Remote(_)
                    if this.changes.poll_change(cx).is_ready() => {}
                ReadOutcome::Nothing | ReadOutcome::Remote(_) => return this.wait(cx),
            }
        }
    }
}

/// Reads events from `next` on, from the server or the durable log, and retries until they are
/// available; returns a gap when they are lost.
async fn page(
    sources: StreamSources,
    run_id: RunId,
    next: u64,
    last: Option<EventId>,
    count: usize,
) -> Result<Vec<StreamEvent>, Gap> {
    let mut missing_since = None;
    loop {
        let snapshot = sources.read_stream(&run_id, Some((next, count))).await;
        if let Ok(snapshot) = &snapshot {
            let follow: Vec<_> = (next..)
                .zip(&snapshot.events)
                .take_while(|(seq, event)| event.id.seq == *seq)
                .map(|(_, event)| event.clone())
                .collect();
            if !follow.is_empty() {
                return Ok(follow);
            }
        }
        let logged = sources.logged_page(&run_id, next, count).await;
        if let Ok(page) = &logged
            && !page.events.is_empty()
        {
            return Ok(page.events.clone());
        }
        if let Ok(snapshot) = snapshot {
            let trimmed =
                logged.is_ok() && snapshot.head.as_ref().is_some_and(|head| next < head.first);
            let since = *missing_since.get_or_insert_with(Instant::now);
            if trimmed || since.elapsed() >= sources.options.loss_timeout {
                return Err(snapshot
                    .head
                    .as_ref()
                    .unwrap_or(&StreamHead::default())
                    .gap(&run_id, last));
            }
        }
        tokio::time::sleep(RETRY_DELAY).await;
    }
}
