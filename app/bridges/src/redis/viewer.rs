//! One viewer's way through a run's stream: from the server where it is behind, from the log that its node shares where not.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::Stream;
use futures_util::future::BoxFuture;
use harness::ids::RunId;
use harness::runtime::runs::store::StoreError;
use harness::runtime::stream_bridge::{
    EventId, Gap, HEARTBEAT_SENTINEL, Heartbeat, Listener, LogOutline, LogPage, ResumeFrom,
    StreamEvent, StreamItem, StreamLog,
};
use tokio::time::{Instant, timeout};

use super::lane::Outage;
use super::link::{Link, Look, Wanted};
use super::log::{Entry, Place, Read, RunLog, cursor_of};
use super::options::RedisOptions;
use super::outline::Outline;

/// A server or a log that takes longer to answer is out of order for who looks.
const LOOK_LIMIT: Duration = Duration::from_secs(2);
/// Between two tries to read a page.
const TRY_AGAIN_AFTER: Duration = Duration::from_millis(250);

/// What all viewers of a node share.
#[derive(Clone)]
pub(super) struct Surroundings {
    pub(super) link: Arc<Link>,
    pub(super) options: Arc<RedisOptions>,
    pub(super) closed: Arc<AtomicBool>,
    /// Where events are that the server does not have.
    pub(super) durable: Option<Arc<dyn StreamLog>>,
}

impl Surroundings {
    /// Looks at streams of the server. Who has a durable log waits less long for it.
    pub(super) async fn look(&self, wanted: &[Wanted]) -> Result<Vec<Look>, Outage> {
        let look = self.link.look(wanted);
        match &self.durable {
            Some(_) => timeout(LOOK_LIMIT, look)
                .await
                .unwrap_or_else(|_| Err(Outage::because("no answer in time"))),
            None => look.await,
        }
    }

    /// Looks at one stream.
    pub(super) async fn look_at(
        &self,
        run_id: &RunId,
        events: Option<(u64, usize)>,
    ) -> Result<Look, Outage> {
        Ok(self
            .look(&[(run_id.clone(), events)])
            .await?
            .pop()
            .unwrap_or_default())
    }

    /// What the durable log has of a run; nothing without one.
    pub(super) async fn logged(&self, run_id: &RunId) -> Result<LogOutline, StoreError> {
        let Some(durable) = &self.durable else {
            return Ok(LogOutline::default());
        };
        timeout(LOOK_LIMIT, durable.outline(run_id))
            .await
            .unwrap_or_else(|_| Err(late()))
    }

    /// Events of the durable log; none without one.
    pub(super) async fn logged_page(
        &self,
        run_id: &RunId,
        next: u64,
        count: usize,
    ) -> Result<LogPage, StoreError> {
        let Some(durable) = &self.durable else {
            return Ok(LogPage::default());
        };
        timeout(LOOK_LIMIT, durable.read(run_id, next, count))
            .await
            .unwrap_or_else(|_| Err(late()))
    }
}

fn late() -> StoreError {
    StoreError::Unavailable("the durable log does not answer".to_owned())
}

/// Replays a stream from a place in it, then follows it. Holds no connection and at most one page of events.
pub(super) struct Viewer {
    around: Surroundings,
    log: Arc<RunLog>,
    changes: Listener,
    /// Read, not yet given.
    batch: VecDeque<Entry>,
    page: Option<BoxFuture<'static, Result<Vec<StreamEvent>, Gap>>>,
    /// What the next batch begins with.
    next_seq: u64,
    generation: u32,
    last: Option<EventId>,
    polled_at: Instant,
    heartbeat: Option<Heartbeat>,
    done: bool,
}

impl Viewer {
    /// A viewer that begins at `place`. A heartbeat of zero means none.
    pub(super) fn new(
        around: Surroundings,
        log: Arc<RunLog>,
        from: ResumeFrom,
        place: &Place,
        heartbeat: Duration,
    ) -> Self {
        Self {
            around,
            changes: log.listen(),
            log,
            batch: VecDeque::new(),
            page: None,
            next_seq: place.next,
            generation: place.generation,
            last: cursor_of(from),
            polled_at: Instant::now(),
            heartbeat: Heartbeat::every(heartbeat),
            done: false,
        }
    }

    /// Whether `event` comes after what this viewer saw. Another attempt's does if it is the first of them.
    fn goes_on_with(&self, event: EventId) -> bool {
        self.last.is_none_or(|last| {
            last.attempt == event.attempt || last.seq == 0 || self.log.begins_with(event)
        })
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
        if this.done {
            return Poll::Ready(None);
        }
        let now = Instant::now();
        let polled_before = std::mem::replace(&mut this.polled_at, now);
        loop {
            if this.around.closed.load(Ordering::Acquire) {
                return this.finish(StreamItem::Aborted);
            }
            if let Some(entry) = this.batch.pop_front() {
                if now.saturating_duration_since(polled_before.max(entry.at))
                    >= this.around.options.stalled_subscriber_timeout
                {
                    return this.finish(StreamItem::Aborted);
                }
                if !this.goes_on_with(entry.event.id) {
                    // The stream was lost, and a later attempt went on from before what was seen here: who comes back gets that.
                    return this.finish(StreamItem::Aborted);
                }
                return Poll::Ready(Some(this.give(entry, now)));
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
                Read::Events => {
                    this.page = None;
                    this.next_seq += this.batch.len() as u64;
                }
                Read::AtTheServer(count) if this.page.is_none() => {
                    let (around, run_id) = (this.around.clone(), this.log.run_id().clone());
                    this.page = Some(Box::pin(page(
                        around,
                        run_id,
                        this.next_seq,
                        this.last,
                        count,
                    )));
                }
                Read::Ended(kind) => return this.finish(StreamItem::End(kind)),
                Read::Gap(gap) => return this.finish(StreamItem::Gap(gap)),
                Read::Abandoned => return this.finish(StreamItem::Aborted),
                // Heard of since before the log was read, so no change is missed in between.
                Read::Nothing | Read::AtTheServer(_) if this.changes.poll_change(cx).is_ready() => {
                }
                Read::Nothing | Read::AtTheServer(_) => return this.wait(cx),
            }
        }
    }
}

/// Events from `next` on, of the server or the durable log, however long they take; a gap when they are gone for good.
async fn page(
    around: Surroundings,
    run_id: RunId,
    next: u64,
    last: Option<EventId>,
    count: usize,
) -> Result<Vec<StreamEvent>, Gap> {
    let mut missing_since = None;
    loop {
        let look = around.look_at(&run_id, Some((next, count))).await;
        if let Ok(look) = &look {
            let follow: Vec<_> = (next..)
                .zip(&look.events)
                .take_while(|(seq, event)| event.id.seq == *seq)
                .map(|(_, event)| event.clone())
                .collect();
            if !follow.is_empty() {
                return Ok(follow);
            }
        }
        let logged = around.logged_page(&run_id, next, count).await;
        if let Ok(page) = &logged
            && !page.events.is_empty()
        {
            return Ok(page.events.clone());
        }
        if let Ok(look) = look {
            let trimmed = logged.is_ok()
                && look
                    .outline
                    .as_ref()
                    .is_some_and(|outline| next < outline.first);
            let since = *missing_since.get_or_insert_with(Instant::now);
            if trimmed || since.elapsed() >= around.options.loss_patience {
                return Err(look
                    .outline
                    .as_ref()
                    .unwrap_or(&Outline::default())
                    .gap(&run_id, last));
            }
        }
        tokio::time::sleep(TRY_AGAIN_AFTER).await;
    }
}
