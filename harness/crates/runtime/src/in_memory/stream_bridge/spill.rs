//! Spills the events of a full log to the durable log, and reads them back.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::limits::Limits;
use super::log::{Located, RunLog, State};
use super::shared::Shared;
use crate::stream_bridge::{
    Gap, LogBatch, LogOutline, LogRange, ResumeFrom, StreamEvent, StreamLog, StreamLogError,
    locate_in,
};
use deerflow_core::ids::RunId;
use deerflow_core::tasks::TaskKind;

/// Maximum size of one batch.
const BATCH_EVENTS: usize = 256;
const BATCH_BYTES: usize = 1024 * 1024;
/// Number of events that a viewer reads at a time.
const PAGE_EVENTS: usize = 64;
/// Delay between two attempts to write or to read.
const RETRY_DELAY: Duration = Duration::from_millis(250);
/// Maximum time that a viewer retries to read the durable log.
const READ_TIMEOUT: Duration = Duration::from_secs(10);

impl State {
    fn is_over(&self, events: usize, bytes: usize) -> bool {
        self.entries.len() > events || self.entries.bytes() > bytes
    }

    /// Evicts events that the durable log has, and the oldest ones if too many are pending. The
    /// newest event is retained.
    pub(super) fn trim(&mut self, limits: &Limits) {
        let (events, bytes) = limits
            .pending
            .filter(|_| !self.spilled.refused)
            .unwrap_or_default();
        while self.entries.len() > 1 && self.is_over(limits.events, limits.bytes) {
            let is_pending = self.first_seq() > self.spilled.stored_up_to;
            if is_pending
                && !self.is_over(
                    limits.events.saturating_add(events),
                    limits.bytes.saturating_add(bytes),
                )
            {
                break;
            }
            self.entries.evict_oldest();
        }
    }

    /// Reports whether the oldest events have to be written.
    fn overflows(&self, limits: &Limits) -> bool {
        let spills = limits.pending.is_some() && !self.spilled.refused;
        spills
            && self.is_over(limits.events, limits.bytes)
            && self.first_seq() > self.spilled.stored_up_to
    }

    fn oldest_batch(&self, run_id: &RunId) -> LogBatch {
        let first = self.first_seq();
        let mut bytes = 0;
        let fit = self
            .entries
            .range(0)
            .map(|entry| entry.event)
            .take(BATCH_EVENTS)
            .take_while(|event| {
                bytes += event.data.len();
                bytes <= BATCH_BYTES || event.id.seq == first
            });
        LogBatch {
            run_id: run_id.clone(),
            attempt: self.attempt,
            before: first - 1,
            events: fit.collect(),
            end: None,
        }
    }
}

impl RunLog {
    /// Reports whether the caller has to start writing: the log is over its limits, and no task is
    /// writing.
    fn begin_spill(&self, limits: &Limits) -> bool {
        let mut state = self.state.lock();
        state.overflows(limits) && !std::mem::replace(&mut state.spilled.is_writing, true)
    }

    /// Returns the oldest events if they have to be written; `None` ends the task.
    fn next_spill(&self, limits: &Limits) -> Option<LogBatch> {
        let mut state = self.state.lock();
        if !state.overflows(limits) {
            state.spilled.is_writing = false;
            return None;
        }
        Some(state.oldest_batch(self.run_id()))
    }

    /// Records that the durable log has all events up to `tail`.
    fn mark_stored(&self, tail: u64, limits: &Limits) {
        let mut state = self.state.lock();
        state.spilled.stored_up_to = tail;
        state.trim(limits);
    }

    /// Stops spilling; events are retained in memory only.
    fn stop_spilling(&self, limits: &Limits) {
        let mut state = self.state.lock();
        state.spilled.refused = true;
        state.trim(limits);
    }

    /// Resolves the position that a viewer requests, given the `outline` of the durable log.
    fn locate_with(&self, from: ResumeFrom, outline: &LogOutline) -> Option<Located> {
        let state = self.state.lock();
        let mut all = LogOutline {
            ranges: outline.up_to(state.first_seq() - 1).to_vec(),
            end: None,
        };
        for (first, count) in state.entries.ids() {
            all.push(LogRange {
                first: first.seq,
                last: first.seq + count as u64 - 1,
                attempt: first.attempt,
            });
        }
        locate_in(&all.ranges, from).map(|next| Located::At(next, state.status))
    }
}

impl Shared {
    /// Starts writing the excess events of `log`, concurrently with its producer.
    pub(super) fn spill_if_full(&self, log: &Arc<RunLog>) {
        let Some(durable) = self
            .durable
            .as_ref()
            .filter(|_| log.begin_spill(&self.limits))
        else {
            return;
        };
        let (work, stop) = (
            spill(log.clone(), durable.clone(), self.limits),
            self.tasks.token().clone(),
        );
        self.tasks
            .spawn(TaskKind::Finish, "stream spill", async move {
                stop.run_until_cancelled(work).await
            });
    }

    /// Resolves a cursor that is older than the events in memory.
    pub(super) async fn locate_spilled(&self, log: &RunLog, from: ResumeFrom) -> Option<Located> {
        let outline = self.durable.as_ref()?.outline(log.run_id()).await;
        let outline =
            outline.inspect_err(|error| tracing::warn!(run_id = %log.run_id(), %error, "cannot read spilled stream")).ok()?;
        log.locate_with(from, &outline)
    }
}

async fn spill(log: Arc<RunLog>, durable: Arc<dyn StreamLog>, limits: Limits) {
    while let Some(batch) = log.next_spill(&limits) {
        let tail = batch.tail();
        match durable.append(batch).await {
            Ok(()) => log.mark_stored(tail, &limits),
            Err(StreamLogError::Store(error)) => {
                tracing::warn!(run_id = %log.run_id(), %error, "cannot spill stream, retrying");
                tokio::time::sleep(RETRY_DELAY).await;
            }
            Err(refused) => {
                tracing::debug!(run_id = %log.run_id(), %refused, "durable log rejected stream, keeping it in memory only");
                log.stop_spilling(&limits);
            }
        }
    }
}

/// Reads events from `next` on that only the durable log has; `gap` if it does not have them
/// either.
pub(super) async fn page(
    durable: Arc<dyn StreamLog>,
    run_id: RunId,
    next: u64,
    gap: Gap,
) -> Result<Vec<StreamEvent>, Gap> {
    let began = Instant::now();
    loop {
        match durable.read(&run_id, next, PAGE_EVENTS).await {
            Ok(page) if page.events.is_empty() => return Err(gap),
            Ok(page) => return Ok(page.events),
            Err(error) if began.elapsed() >= READ_TIMEOUT => {
                tracing::warn!(%run_id, %error, "cannot read spilled stream");
                return Err(gap);
            }
            Err(_) => tokio::time::sleep(RETRY_DELAY).await,
        }
    }
}
