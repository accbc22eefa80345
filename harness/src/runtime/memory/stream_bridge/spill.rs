//! What a run's log gives to the durable one when it is full, and what is read from there again.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::log::{Located, RunLog, State};
use super::{Inner, MemoryOptions};
use crate::ids::RunId;
use crate::runtime::stream_bridge::{
    Gap, LogBatch, LogOutline, LogRange, ResumeFrom, StreamEvent, StreamLog, StreamLogError,
    locate_in,
};
use crate::runtime::tasks::TaskKind;

/// What goes in one batch.
const BATCH_EVENTS: usize = 256;
const BATCH_BYTES: usize = 1024 * 1024;
/// What a viewer takes at a time.
const PAGE_EVENTS: usize = 64;
/// What may wait for the durable log, beyond what is kept anyway.
const WAITING_EVENTS: usize = 16 * 1024;
const WAITING_BYTES: usize = 16 * 1024 * 1024;
/// Between two tries to write, or to read.
const PAUSE: Duration = Duration::from_millis(250);
/// For so long a viewer waits for a durable log that cannot be read.
const PATIENCE: Duration = Duration::from_secs(10);

/// What a run's log keeps.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    events: usize,
    bytes: usize,
    /// As much again may wait for the durable log, if there is one.
    waiting: Option<(usize, usize)>,
}

impl Limits {
    /// The newest event alone.
    pub(super) const NEWEST: Self = Self {
        events: 1,
        bytes: usize::MAX,
        waiting: None,
    };

    pub(super) fn of(options: &MemoryOptions, spills: bool) -> Self {
        let waiting = spills.then_some((WAITING_EVENTS, WAITING_BYTES));
        Self {
            events: options.max_events,
            bytes: options.max_bytes,
            waiting,
        }
    }
}

/// How far a run's events were given away.
#[derive(Debug, Default)]
pub(super) struct Spilled {
    /// The durable log has all up to this one, as far as they were kept for it.
    upto: u64,
    /// Somebody writes.
    at_work: bool,
    /// The durable log takes no more of this run.
    refused: bool,
}

impl State {
    fn is_over(&self, events: usize, bytes: usize) -> bool {
        self.entries.len() > events || self.bytes > bytes
    }

    /// Drops what need not be kept: what the durable log has, and the oldest when too much waits for it. The newest stays.
    pub(super) fn trim(&mut self, limits: &Limits) {
        let (events, bytes) = limits
            .waiting
            .filter(|_| !self.spilled.refused)
            .unwrap_or_default();
        while self.entries.len() > 1 && self.is_over(limits.events, limits.bytes) {
            let waits = self.first_seq() > self.spilled.upto;
            if waits
                && !self.is_over(
                    limits.events.saturating_add(events),
                    limits.bytes.saturating_add(bytes),
                )
            {
                break;
            }
            self.drop_oldest();
        }
    }

    /// Whether the oldest events are to be written.
    fn overflows(&self, limits: &Limits) -> bool {
        let spills = limits.waiting.is_some() && !self.spilled.refused;
        spills && self.is_over(limits.events, limits.bytes) && self.first_seq() > self.spilled.upto
    }

    fn oldest(&self, run_id: &RunId) -> LogBatch {
        let first = self.first_seq();
        let mut bytes = 0;
        let fit = self
            .entries
            .iter()
            .map(|entry| &entry.event)
            .take(BATCH_EVENTS)
            .take_while(|event| {
                bytes += event.data.len();
                bytes <= BATCH_BYTES || event.id.seq == first
            });
        LogBatch {
            run_id: run_id.clone(),
            attempt: self.attempt,
            before: first - 1,
            events: fit.cloned().collect(),
            end: None,
        }
    }
}

impl RunLog {
    /// Whether the caller is to have events written: there are too many, and nobody does.
    fn begin_spill(&self, limits: &Limits) -> bool {
        let mut state = self.state.lock();
        state.overflows(limits) && !std::mem::replace(&mut state.spilled.at_work, true)
    }

    /// The oldest events, if they are to be written; `None` ends the work.
    fn next_spill(&self, limits: &Limits) -> Option<LogBatch> {
        let mut state = self.state.lock();
        if !state.overflows(limits) {
            state.spilled.at_work = false;
            return None;
        }
        Some(state.oldest(self.run_id()))
    }

    /// The durable log has all up to `tail`.
    fn spilled(&self, tail: u64, limits: &Limits) {
        let mut state = self.state.lock();
        state.spilled.upto = tail;
        state.trim(limits);
    }

    /// Nothing more is given away.
    fn keep_to_itself(&self, limits: &Limits) {
        let mut state = self.state.lock();
        state.spilled.refused = true;
        state.trim(limits);
    }

    /// Where a viewer that asks for `from` begins, when the durable log has `outline`.
    fn locate_with(&self, from: ResumeFrom, outline: &LogOutline) -> Option<Located> {
        let state = self.state.lock();
        let mut all = LogOutline {
            ranges: outline.up_to(state.first_seq() - 1).to_vec(),
            end: None,
        };
        for id in state.entries.iter().map(|entry| entry.event.id) {
            all.push(LogRange {
                first: id.seq,
                last: id.seq,
                attempt: id.attempt,
            });
        }
        locate_in(&all.ranges, from).map(|next| Located::At(next, state.status))
    }
}

impl Inner {
    /// Has what is too much in `log` written, beside its producer.
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

    /// Where a viewer begins whose cursor is older than what is kept here.
    pub(super) async fn locate_spilled(&self, log: &RunLog, from: ResumeFrom) -> Option<Located> {
        let outline = self.durable.as_ref()?.outline(log.run_id()).await;
        let outline =
            outline.inspect_err(|error| tracing::warn!(run_id = %log.run_id(), %error, "a spilled stream cannot be read")).ok()?;
        log.locate_with(from, &outline)
    }
}

async fn spill(log: Arc<RunLog>, durable: Arc<dyn StreamLog>, limits: Limits) {
    while let Some(batch) = log.next_spill(&limits) {
        let tail = batch.tail();
        match durable.append(batch).await {
            Ok(()) => log.spilled(tail, &limits),
            Err(StreamLogError::Store(error)) => {
                tracing::warn!(run_id = %log.run_id(), %error, "a long stream cannot be spilled yet");
                tokio::time::sleep(PAUSE).await;
            }
            Err(refused) => {
                tracing::debug!(run_id = %log.run_id(), %refused, "a long stream is kept in memory alone");
                log.keep_to_itself(&limits);
            }
        }
    }
}

/// Events from `next` on that only the durable log has; `gap` when nobody has them.
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
            Err(error) if began.elapsed() >= PATIENCE => {
                tracing::warn!(%run_id, %error, "a spilled stream cannot be read");
                return Err(gap);
            }
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}
