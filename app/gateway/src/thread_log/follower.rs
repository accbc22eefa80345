//! Fills the log of a thread from the streams of its runs, one run after the other.

use std::collections::HashMap;
use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use deerflow_domain::thread_log::{LoggedEnd, LoggedRun};
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use harness::ids::{RunId, ThreadId};
use harness::runtime::encoding::values_json;
use harness::runtime::runs::{
    RunRecord, RunStatus, ThreadCursor, ThreadEventId, ThreadRunItem, ThreadStreams,
};
use harness::runtime::stream_bridge::{StreamEvent, TerminalKind};

use super::convert::RunConverter;
use super::current_run::CurrentRun;
use super::event::Draft;
use super::log::ThreadLog;
use super::ports::LogPorts;
use crate::responses::is_rolled_back;

/// Pause before a failed step is repeated.
const RETRY: Duration = Duration::from_millis(500);
/// Time without an item after which an active run is taken as read up to its newest event.
const QUIET: Duration = Duration::from_millis(10);
/// Stored status of a run that was rolled back.
const ROLLED_BACK: &str = "rolled_back";
/// Maximum number of items that are handled together.
const TOGETHER: usize = 64;
/// Positions that are skipped where events of a run are missing.
const GAP: u64 = 1_000;

/// Task that fills a log.
pub(super) struct Follower {
    thread: ThreadId,
    log: Arc<ThreadLog>,
    ports: LogPorts,
    /// Ranges of the runs that had one when the log was opened.
    known: HashMap<RunId, LoggedRun>,
    current: Option<CurrentRun>,
    /// Events of the frame that is being converted.
    drafts: Vec<Draft>,
    /// Last item that was read.
    after: Option<ThreadEventId>,
    /// `true` once all runs that had ended before were read.
    is_live: bool,
    /// `true` if the thread was deleted and created again. Its positions begin again, so the log
    /// cannot continue.
    is_superseded: bool,
}

impl Follower {
    pub(super) fn new(thread: ThreadId, log: Arc<ThreadLog>, ports: LogPorts) -> Self {
        Self {
            thread,
            log,
            ports,
            known: HashMap::new(),
            current: None,
            drafts: Vec::new(),
            after: None,
            is_live: false,
            is_superseded: false,
        }
    }

    /// Follows the thread until the server stops, the thread is replaced by a new one with the same
    /// id, or `abandoned` resolves between two runs. A run
    /// is always read to its end, so that the position of the next one is stored.
    pub(super) async fn run<F: Future<Output = ()>>(
        mut self,
        abandoned: impl Fn(Arc<ThreadLog>) -> F,
    ) {
        while !self.ports.tasks.token().is_cancelled() {
            let Some(mut items) = self.subscribe().await else {
                tokio::time::sleep(RETRY).await;
                continue;
            };
            let mut ready = Vec::new();
            loop {
                let (may_stop, left) = (self.current.is_none(), abandoned(self.log.clone()));
                let is_open = tokio::select! {
                    biased;
                    is_open = self.next(&mut items, &mut ready) => is_open,
                    () = left, if may_stop => return,
                };
                if !is_open {
                    break;
                }
                self.handle_all(&mut ready).await;
                if self.is_superseded {
                    return;
                }
            }
            // The stream was interrupted. It continues after the last item.
            tokio::time::sleep(RETRY).await;
        }
    }

    async fn subscribe(&mut self) -> Option<BoxStream<'static, ThreadRunItem>> {
        if !self.is_live {
            match self.ports.positions.ranges(&self.thread).await {
                Ok(ranges) => {
                    let ranges = ranges.into_iter();
                    self.known = ranges.map(|run| (run.run_id.clone(), run)).collect();
                }
                Err(error) => {
                    tracing::warn!(thread_id = %self.thread, %error, "cannot read the positions of a thread's runs yet");
                    return None;
                }
            }
        }
        let from = self.after.map_or(ThreadCursor::START, ThreadCursor::After);
        let streams = ThreadStreams::new(self.ports.runs.runtime());
        match streams
            .follow_runs(&self.thread, from, Duration::ZERO)
            .await
        {
            Ok(items) => Some(items),
            Err(error) => {
                tracing::warn!(thread_id = %self.thread, %error, "cannot follow a thread yet");
                None
            }
        }
    }

    /// Waits for the next items and adds them to `ready`. Returns `false` at the end of the stream.
    /// After a silence the log is complete up to now.
    async fn next(
        &mut self,
        items: &mut BoxStream<'static, ThreadRunItem>,
        ready: &mut Vec<ThreadRunItem>,
    ) -> bool {
        if self.current.is_some() && !self.log.held().is_complete {
            match tokio::time::timeout(QUIET, read_ready(items, ready)).await {
                Ok(is_open) => return is_open,
                Err(_) => self.set_live(),
            }
        }
        read_ready(items, ready).await
    }

    fn set_live(&mut self) {
        self.is_live = true;
        self.log.set_complete();
    }

    /// Handles items that were ready at the same time: the readers are notified of their events
    /// once, and before each step that may wait.
    async fn handle_all(&mut self, ready: &mut Vec<ThreadRunItem>) {
        let now = self.ports.clock.now().timestamp_millis();
        for item in ready.drain(..) {
            match item {
                ThreadRunItem::Event(id, event) => {
                    self.after = Some(id);
                    self.convert(&event, now);
                }
                item => {
                    self.log.publish();
                    self.handle(item).await;
                }
            }
            if self.is_superseded {
                break;
            }
        }
        self.log.publish();
    }

    /// Handles an item that is no event.
    async fn handle(&mut self, item: ThreadRunItem) {
        match item {
            ThreadRunItem::Opened(record) => self.open(*record).await,
            ThreadRunItem::Gap => {
                if let Some(current) = &mut self.current {
                    current.numbers.skip(GAP);
                    let missing = current.numbers.last();
                    self.log.set_unavailable(missing);
                }
            }
            ThreadRunItem::Ended(id, kind) => {
                self.after = Some(id);
                self.end(kind).await;
            }
            ThreadRunItem::Skipped(id, record) => {
                self.after = Some(id);
                self.skip(*record).await;
            }
            ThreadRunItem::Idle => self.set_live(),
            ThreadRunItem::Event(..) | ThreadRunItem::Heartbeat => {}
        }
    }

    async fn open(&mut self, record: RunRecord) {
        let is_reopened = self
            .current
            .as_ref()
            .is_some_and(|current| current.record.run_id == record.run_id);
        if is_reopened {
            return;
        }
        // Without a range the thread is deleted, and the run has no readers.
        let range = self.range(&record.run_id).await;
        if let Some(range) = &range
            && range.first <= self.log.last()
        {
            self.is_superseded = true;
            return;
        }
        self.current = range.map(|range| CurrentRun::new(record, range.first));
    }

    /// Returns the range of a run, which is assigned if it has none; `None` if its thread is
    /// deleted.
    async fn range(&self, run: &RunId) -> Option<LoggedRun> {
        loop {
            match self.ports.positions.open(&self.thread, run).await {
                Ok(range) => return range,
                Err(error) => {
                    tracing::warn!(run_id = %run, %error, "cannot assign the position of a run yet");
                    tokio::time::sleep(RETRY).await;
                }
            }
        }
    }

    fn convert(&mut self, event: &StreamEvent, now: i64) {
        let Some(current) = &mut self.current else {
            return;
        };
        if event.id.attempt > current.numbers.attempt() {
            current.numbers.begin_attempt(event.id.attempt);
            current.converter = RunConverter::new(&current.record.assistant);
        }
        current.converter.frame(event, &mut self.drafts);
        current.add(&mut self.drafts, now, &self.log);
    }

    async fn end(&mut self, kind: TerminalKind) {
        let Some(mut current) = self.current.take() else {
            return;
        };
        let run = current.record.run_id.clone();
        let status = if kind == TerminalKind::Cancel && self.was_rolled_back(&run).await {
            self.log.remove_run(&run);
            ROLLED_BACK
        } else {
            tokio::time::sleep_until(current.may_end_at).await;
            let now = self.ports.clock.now().timestamp_millis();
            let drafts = current.converter.end(kind);
            let status = status_of(&drafts);
            current.append(drafts, now, &self.log);
            status
        };
        self.close(&run, current.numbers.count(), status).await;
    }

    /// Reports whether a run was rolled back or deleted. If that is unknown, it was cancelled.
    async fn was_rolled_back(&self, run: &RunId) -> bool {
        match self.ports.runs.get_run(Some(&self.thread), run).await {
            Ok(Some(record)) => is_rolled_back(&record),
            Ok(None) => true,
            Err(error) => {
                tracing::warn!(run_id = %run, %error, "cannot read a cancelled run");
                false
            }
        }
    }

    /// Handles a run that has ended and whose frames are not available. Readers who saw it start,
    /// or who wait for it, get its end.
    async fn skip(&mut self, record: RunRecord) {
        let opened = self
            .current
            .take()
            .filter(|current| current.record.run_id == record.run_id);
        let range = match self.known.get(&record.run_id) {
            Some(known) => Some(known.clone()),
            None if opened.is_some() || self.is_live => self.range(&record.run_id).await,
            None => None,
        };
        let Some(range) = range else { return };
        if let Some(end) = range.end {
            return self.recall(record, range.first, &end).await;
        }
        let is_announced = opened.is_some();
        let mut current = opened.unwrap_or_else(|| CurrentRun::new(record.clone(), range.first));
        let mut status = ROLLED_BACK;
        if is_rolled_back(&record) {
            self.log.remove_run(&record.run_id);
        } else {
            let at = record.updated_at.timestamp_millis();
            if !is_announced {
                let begun = vec![current.converter.begin()];
                current.append(begun, at, &self.log);
            }
            // Other readers may have seen more events of the run.
            current.numbers.begin_attempt(record.attempt + 1);
            current.converter.set_error(record.error.clone());
            let drafts = current.converter.end(end_of(&record));
            status = status_of(&drafts);
            current.append(drafts, at, &self.log);
        }
        let count = current.numbers.count();
        self.close(&record.run_id, count, status).await;
    }

    /// Adds what is stored of a run that was read before: its start, its end and, before the end of
    /// the newest run, the state. They have the positions that they had.
    async fn recall(&mut self, record: RunRecord, first: u64, end: &LoggedEnd) {
        let last = first + end.count.saturating_sub(1);
        self.log.set_unavailable(last.saturating_sub(1));
        if is_rolled_back(&record) || end.count < 2 {
            return;
        }
        let (at, state) = (
            record.updated_at.timestamp_millis(),
            self.newest_state(&record.run_id).await,
        );
        let mut current = CurrentRun::new(record, first);
        let error = current.record.error.clone();
        let Some(ended) = current.converter.end_as(&end.status, error) else {
            return;
        };
        let begun = vec![current.converter.begin()];
        current.append(begun, at, &self.log);
        if let Some(state) = state.filter(|_| end.count > 2) {
            current.numbers.continue_at(end.count - 2);
            let state = vec![current.converter.state(state)];
            current.append(state, at, &self.log);
        }
        current.numbers.continue_at(end.count - 1);
        current.append(vec![ended], at, &self.log);
    }

    /// Returns the state of the thread, if this run wrote it.
    async fn newest_state(&self, run: &RunId) -> Option<Bytes> {
        match self.ports.checkpoints.get(&self.thread, None).await {
            Ok(newest) => newest
                .filter(|newest| newest.meta.run_id.as_ref() == Some(run))
                .map(|newest| values_json(&newest.state, &[])),
            Err(error) => {
                tracing::warn!(run_id = %run, %error, "cannot read the state of a thread");
                None
            }
        }
    }

    async fn close(&self, run: &RunId, count: u64, status: &str) {
        let status = status.to_owned();
        let end = LoggedEnd { count, status };
        if let Err(error) = self.ports.positions.close(&self.thread, run, end).await {
            // The next run begins after the positions that are reserved for this one.
            tracing::warn!(run_id = %run, %error, "cannot store the number of a run's events");
        }
    }
}

/// Waits for the next item and adds all items that are ready to `ready`, which is empty before.
/// Returns `false` at the end of the stream. It is cancel-safe.
async fn read_ready(
    items: &mut BoxStream<'static, ThreadRunItem>,
    ready: &mut Vec<ThreadRunItem>,
) -> bool {
    poll_fn(|cx| {
        while ready.len() < TOGETHER {
            match items.poll_next_unpin(cx) {
                Poll::Ready(Some(item)) => ready.push(item),
                Poll::Ready(None) => break,
                Poll::Pending if ready.is_empty() => return Poll::Pending,
                Poll::Pending => break,
            }
        }
        Poll::Ready(!ready.is_empty())
    })
    .await
}

/// Returns the kind of end of a run that has ended.
fn end_of(record: &RunRecord) -> TerminalKind {
    match record.status {
        RunStatus::Error | RunStatus::Timeout => TerminalKind::Error,
        RunStatus::Interrupted => TerminalKind::Cancel,
        _ => TerminalKind::End,
    }
}

/// Returns the status that the last of these events reports about the run.
fn status_of(drafts: &[Draft]) -> &'static str {
    let last = drafts.last().and_then(|draft| draft.change.as_ref());
    last.map_or("completed", |change| change.status)
}
