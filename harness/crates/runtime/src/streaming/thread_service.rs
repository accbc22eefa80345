//! Subscriptions to threads: the events of a thread's runs, one run after the other.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::stream::{BoxStream, StreamExt};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::Instant;

use super::source_stream::{Opening, Source, SourceStream};
use super::stream_service::with_fallback;
use super::thread_cursor::{ThreadCursor, ThreadEventId};
use super::thread_items::ThreadRunItem;
use crate::definition::{RunRecord, RunStatus, StoreError};
use crate::kernel::{ActiveRun, Runtime};
use crate::ports::RunListQuery;
use crate::stream_bridge::{BridgeError, EventId, Gap, ResumeFrom, ResumeResult, StreamItem};
use deerflow_core::actor_context::Owner;
use deerflow_core::ids::{RunId, ThreadId};

/// Poll interval. Bounds the delay of a run of another process whose start signal was lost.
const POLL_INTERVAL: Duration = Duration::from_secs(2);
/// First interval of the polls for the stream of a run that another process executes and has not
/// published yet. It doubles up to [`POLL_INTERVAL`].
const FIRST_RETRY: Duration = Duration::from_millis(20);

/// Number of runs per query, and maximum number of queries to find the next run.
const PAGE_SIZE: usize = 50;
const MAX_PAGES: usize = 20;

/// Subscribes to the runs of a thread and their events. The stream ends only at shutdown.
pub(crate) async fn follow_runs(
    thread: ThreadId,
    owner: Owner,
    cursor: ThreadCursor,
    heartbeat: Duration,
    runtime: &Arc<Runtime>,
) -> Result<BoxStream<'static, ThreadRunItem>, StoreError> {
    let launches = runtime.registry.launches.subscribe();
    let after = match cursor {
        ThreadCursor::After(id) => id,
        ThreadCursor::Tail => ThreadEventId::BEFORE_ALL,
    };
    let mut viewer = ThreadViewer {
        thread,
        owner,
        after,
        tail: None,
        current: None,
        ended_runs: VecDeque::new(),
        is_idle: false,
        retry: FIRST_RETRY,
        heartbeat,
        launches,
        runtime: runtime.clone(),
    };
    if cursor == ThreadCursor::Tail {
        viewer.skip_ended_runs().await?;
    }
    Ok(SourceStream::new(viewer).boxed())
}

struct ThreadViewer {
    thread: ThreadId,
    owner: Owner,
    /// Last event that was sent; later runs, and later events of the same run, follow.
    after: ThreadEventId,
    /// Run that was active when a subscriber without a cursor subscribed. Only its new events are
    /// sent.
    tail: Option<RunId>,
    current: Option<CurrentRun>,
    /// Ended runs that follow, oldest first. They do not change, so they are read once.
    ended_runs: VecDeque<RunRecord>,
    /// `true` after [`ThreadRunItem::Idle`], until the next run.
    is_idle: bool,
    /// Time until the next poll for a run that has not published yet.
    retry: Duration,
    heartbeat: Duration,
    launches: Receiver<ThreadId>,
    runtime: Arc<Runtime>,
}

/// Run whose events are being sent.
struct CurrentRun {
    run: RunRecord,
    items: BoxStream<'static, StreamItem>,
    /// Last gap of the stream.
    gap: Option<Gap>,
}

/// Result of an attempt to open the stream of the next run.
enum NextRun {
    Open(Box<RunRecord>),
    /// The run has ended, and its events are no longer available.
    Skipped(Box<RunRecord>),
    /// No run has started.
    Absent,
    /// The run is executed by a process that has not published yet.
    Unpublished,
    /// This process executes the run, whose stream is not open yet.
    Unopened(Arc<ActiveRun>),
}

impl Source for ThreadViewer {
    type Item = ThreadRunItem;

    fn poll_open(&mut self, cx: &mut Context<'_>) -> Option<Poll<Option<ThreadRunItem>>> {
        let current = self.current.as_mut()?;
        let begun = current.run.created_at.timestamp_micros();
        let item = loop {
            match current.items.poll_next_unpin(cx) {
                Poll::Ready(Some(StreamItem::Gap(gap))) => current.gap = Some(gap),
                Poll::Ready(item) => break item,
                Poll::Pending => return Some(Poll::Pending),
            }
        };
        Some(Poll::Ready(match item {
            Some(StreamItem::Event(event)) => {
                self.after = ThreadEventId::of(begun, event.id);
                Some(ThreadRunItem::Event(self.after, event))
            }
            Some(StreamItem::Heartbeat) => Some(ThreadRunItem::Heartbeat),
            Some(StreamItem::End(kind)) => {
                self.mark_ended(begun);
                Some(ThreadRunItem::Ended(self.after, kind))
            }
            Some(StreamItem::Gap(_) | StreamItem::Aborted) => None,
            None => self.on_stream_end(),
        }))
    }

    fn open_next(mut self: Box<Self>) -> Opening<Self> {
        Box::pin(async move {
            let item = self.next_opened().await;
            (self, item)
        })
    }
}

impl ThreadViewer {
    async fn skip_ended_runs(&mut self) -> Result<(), StoreError> {
        let query = RunListQuery {
            limit: PAGE_SIZE,
            ..RunListQuery::default()
        };
        let runs = self
            .runtime
            .ports
            .query
            .list(&self.thread, &query, &self.owner)
            .await?;
        // Selects the newest ended run before the first unfinished one. Ended runs after that one
        // were queued and cancelled before they started.
        let now = self.runtime.ports.clock.now();
        let begun = runs.iter().rev().filter(|run| run.created_at <= now);
        if let Some(ended_run) = begun.take_while(|run| run.status.is_terminal()).last() {
            self.after = ThreadEventId::end_of_run(ended_run.created_at.timestamp_micros());
        }
        self.tail = runs
            .into_iter()
            .find(|run| run.status.is_owned())
            .map(|run| run.run_id);
        Ok(())
    }

    /// Waits for the next run that has started. Returns `None` at shutdown.
    async fn next_opened(&mut self) -> Option<ThreadRunItem> {
        let quiet_since = Instant::now();
        loop {
            let mut poll_after = POLL_INTERVAL;
            let unopened = match self.open_run().await {
                Ok(NextRun::Open(run)) => {
                    self.is_idle = false;
                    self.retry = FIRST_RETRY;
                    return Some(ThreadRunItem::Opened(run));
                }
                Ok(NextRun::Skipped(run)) => {
                    self.mark_ended(run.created_at.timestamp_micros());
                    return Some(ThreadRunItem::Skipped(self.after, run));
                }
                Ok(NextRun::Absent | NextRun::Unpublished)
                    if !std::mem::replace(&mut self.is_idle, true) =>
                {
                    return Some(ThreadRunItem::Idle);
                }
                Ok(NextRun::Absent) => None,
                Ok(NextRun::Unpublished) => {
                    poll_after = self.retry;
                    self.retry = POLL_INTERVAL.min(2 * self.retry);
                    None
                }
                Ok(NextRun::Unopened(active)) => Some(active),
                Err(BridgeError::Closed) => return None,
                Err(error) => {
                    tracing::warn!(
                        thread_id = %self.thread, %error,
                        "cannot subscribe to the next run of a thread yet"
                    );
                    None
                }
            };
            if !self.heartbeat.is_zero() && quiet_since.elapsed() >= self.heartbeat {
                return Some(ThreadRunItem::Heartbeat);
            }
            self.wait_for_run(poll_after, quiet_since, unopened.as_deref())
                .await?;
        }
    }

    /// Returns the item of an ended or interrupted stream of the current run.
    fn on_stream_end(&mut self) -> Option<ThreadRunItem> {
        let ended_run = self.current.take()?;
        self.resume_after_gap(ended_run)?;
        Some(ThreadRunItem::Gap)
    }

    /// Skips the remaining events of the run created at `begun`, which has ended.
    fn mark_ended(&mut self, begun: i64) {
        self.after = ThreadEventId::end_of_run(begun);
        self.current = None;
    }

    /// Continues after a gap, from the oldest event that is retained. Returns `None` if the stream
    /// ended without a gap.
    fn resume_after_gap(&mut self, CurrentRun { run, gap, .. }: CurrentRun) -> Option<()> {
        let oldest = gap?
            .earliest_available_event_id
            .parse::<EventId>()
            .ok()
            .filter(|oldest| oldest.seq > 0);
        let begun = run.created_at.timestamp_micros();
        let before = oldest.map(|EventId { seq, attempt }| {
            ThreadEventId::of(
                begun,
                EventId {
                    seq: seq - 1,
                    attempt,
                },
            )
        });
        match before.filter(|before| *before != self.after) {
            Some(before) => (self.after, self.tail) = (before, None),
            // No events are retained, or they were evicted in the meantime.
            None => {
                self.after = ThreadEventId {
                    begun,
                    attempt: 0,
                    seq: 0,
                };
                self.tail = Some(run.run_id);
            }
        }
        Some(())
    }

    /// Opens the stream of the next run.
    async fn open_run(&mut self) -> Result<NextRun, BridgeError> {
        let next = self
            .next_run()
            .await
            .map_err(|error| BridgeError::Transport(error.to_string()))?;
        let Some(run) = next else {
            return Ok(NextRun::Absent);
        };
        if let Some(active) = self.runtime.registry.active(&run.run_id)
            && !active.opened.is_cancelled()
        {
            return Ok(NextRun::Unopened(active));
        }
        let begun = run.created_at.timestamp_micros();
        let from = match self.after {
            _ if self.tail.as_ref() == Some(&run.run_id) => ResumeFrom::Tail,
            after => after.resume(begun),
        };
        let subscription = self
            .runtime
            .ports
            .bridge
            .subscribe(&run.run_id, from, self.heartbeat)
            .await?;
        if subscription.resume != ResumeResult::Unknown {
            let items = with_fallback(subscription.items, from, &run.run_id, &self.runtime);
            let opened = Box::new(run.clone());
            self.current = Some(CurrentRun {
                run,
                items,
                gap: None,
            });
            return Ok(NextRun::Open(opened));
        }
        if !run.status.is_terminal() {
            return Ok(NextRun::Unpublished);
        }
        Ok(NextRun::Skipped(Box::new(run)))
    }

    /// Returns the first run that has started and has unsent events.
    async fn next_run(&mut self) -> Result<Option<RunRecord>, StoreError> {
        while let Some(ended_run) = self.ended_runs.front() {
            let begun = ended_run.created_at.timestamp_micros();
            if self.after.is_before_end_of(begun) {
                return Ok(Some(ended_run.clone()));
            }
            self.ended_runs.pop_front();
        }
        let now = self.runtime.ports.clock.now();
        let mut new_runs = VecDeque::new();
        for page in 0..MAX_PAGES {
            let query = RunListQuery {
                limit: PAGE_SIZE,
                offset: page * PAGE_SIZE,
                status: None,
            };
            let runs = self
                .runtime
                .ports
                .query
                .list(&self.thread, &query, &self.owner)
                .await?;
            let full = runs.len() == PAGE_SIZE;
            let is_new = |run: &RunRecord| {
                self.after
                    .is_before_end_of(run.created_at.timestamp_micros())
            };
            let all_new = runs.iter().all(is_new);
            let counts = |run: &RunRecord| {
                is_new(run)
                    && run.created_at <= now
                    && (run.status != RunStatus::Pending || run.cancel.is_none())
            };
            runs.into_iter()
                .filter(counts)
                .for_each(|run| new_runs.push_front(run));
            if !full || !all_new {
                break;
            }
        }
        let first = new_runs.pop_front();
        if first.as_ref().is_some_and(|run| run.status.is_terminal()) {
            let ended = new_runs.into_iter();
            self.ended_runs = ended.take_while(|run| run.status.is_terminal()).collect();
        }
        // Later runs wait until the oldest one has started.
        Ok(first.filter(|run| run.status != RunStatus::Pending))
    }

    /// Waits until a run of the thread starts in any process, the stream of `unopened` opens, or the
    /// next poll or heartbeat is due. Returns `None` at shutdown.
    async fn wait_for_run(
        &mut self,
        poll_after: Duration,
        quiet_since: Instant,
        unopened: Option<&ActiveRun>,
    ) -> Option<()> {
        let poll_at = Instant::now() + poll_after;
        let until = match self.heartbeat.is_zero() {
            true => poll_at,
            false => poll_at.min(quiet_since + self.heartbeat),
        };
        let opened = async {
            match unopened {
                Some(active) => active.opened.cancelled().await,
                None => std::future::pending().await,
            }
        };
        let stop = self.runtime.ports.tasks.token();
        tokio::select! {
            biased;
            () = stop.cancelled() => None,
            () = opened => Some(()),
            launched = launch_on(&self.thread, &mut self.launches) => launched,
            () = tokio::time::sleep_until(until) => Some(()),
        }
    }
}

/// Waits until a run of the thread starts, or until announcements were missed. Returns `None`
/// if no more runs can start.
async fn launch_on(thread: &ThreadId, launches: &mut Receiver<ThreadId>) -> Option<()> {
    loop {
        match launches.recv().await {
            Ok(launched) if launched != *thread => {}
            Err(RecvError::Closed) => return None,
            Ok(_) | Err(RecvError::Lagged(_)) => return Some(()),
        }
    }
}

#[cfg(test)]
#[path = "thread_service_tests.rs"]
mod tests;
