//! Event log of one run: appended by its producer, read by any number of viewers, each with its own
//! cursor.

use std::collections::VecDeque;

use crate::stream_bridge::{
    BridgeError, EventData, EventId, EventName, FanOut, Gap, Listener, ResumeFrom, StreamEvent,
    StreamStatus, TerminalKind,
};
use bytes::Bytes;
use deerflow_core::ids::RunId;
use deerflow_core::tasks::Tasks;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::entries::Entries;
use super::entry::Entry;
use super::limits::{Limits, SpillState};
use super::options::InMemoryOptions;

/// Maximum number of events that a viewer takes from the log under one lock.
const BATCH_EVENTS: usize = 64;
const BATCH_BYTES: usize = 64 * 1024;

/// Kind of a change, for viewers that take the events of a burst together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    /// An event was appended.
    Event,
    /// The events since the last urgent change fill a batch, or no event follows.
    Urgent,
}

/// Result of a viewer's read after its cursor.
#[derive(Debug)]
pub(super) enum ReadResult {
    /// At least one event.
    Events,
    /// No new event.
    NoEvents,
    /// All events were read, and the run has ended.
    Ended(TerminalKind),
    /// The next event is no longer retained.
    Gap(Gap),
    /// All events were read, and the log was removed without an end.
    Abandoned,
}

/// Start position of a viewer.
#[derive(Debug)]
pub(super) enum Located {
    /// At this sequence number, in a stream of this status.
    At(u64, StreamStatus),
    /// No position: the cursor is outside the retained events.
    Gap(Gap),
}

/// Events and state of one run.
#[derive(Debug)]
pub(super) struct RunLog {
    run_id: RunId,
    pub(super) state: Mutex<State>,
    /// Notified of each change.
    changes: FanOut,
    /// Notified of those changes for which no viewer waits longer.
    urgent_changes: FanOut,
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) entries: Entries,
    pub(super) next_seq: u64,
    pub(super) spilled: SpillState,
    /// Newest attempt that published.
    pub(super) attempt: u32,
    pub(super) status: StreamStatus,
    /// Bytes of the events since the last change that was urgent.
    gathered: usize,
    /// Time of the last publish, or of the end.
    changed_at: Instant,
    /// Expiry requested by a clean-up.
    expire_at: Option<Instant>,
    /// `true` after the bridge has removed this log.
    retired: bool,
}

impl RunLog {
    pub(super) fn new(run_id: RunId, tasks: Tasks) -> Self {
        let state = State {
            entries: Entries::default(),
            next_seq: 1,
            spilled: SpillState::default(),
            attempt: 0,
            status: StreamStatus::Active,
            gathered: 0,
            changed_at: Instant::now(),
            expire_at: None,
            retired: false,
        };
        Self {
            run_id,
            state: Mutex::new(state),
            changes: FanOut::new(tasks.clone()),
            urgent_changes: FanOut::new(tasks),
        }
    }

    pub(super) fn run_id(&self) -> &RunId {
        &self.run_id
    }

    /// Notifies the viewers of a change. The caller holds no lock.
    pub(super) fn notify(&self, change: Change) {
        self.changes.notify();
        if change == Change::Urgent {
            self.urgent_changes.notify();
        }
    }

    /// Registers a viewer for every change, and for the urgent ones.
    pub(super) fn listen(&self) -> [Listener; 2] {
        [self.changes.listen(), self.urgent_changes.listen()]
    }

    /// Appends an event. The caller notifies the viewers of the change.
    pub(super) fn append(
        &self,
        attempt: u32,
        event: EventName,
        data: EventData,
        limits: &Limits,
    ) -> Result<(EventId, Change), BridgeError> {
        let now = Instant::now();
        let mut state = self.state.lock();
        state.admit(&self.run_id, attempt)?;
        state.gathered += data.len();
        let change = if state.gathered < BATCH_BYTES {
            Change::Event
        } else {
            state.gathered = 0;
            Change::Urgent
        };
        Ok((state.push(event, data, now, limits), change))
    }

    /// Ends the run and returns the bytes that its log uses. The caller notifies the viewers of an
    /// urgent change.
    pub(super) fn end(
        &self,
        attempt: u32,
        kind: TerminalKind,
        error: Option<Bytes>,
        limits: &Limits,
    ) -> Result<usize, BridgeError> {
        let now = Instant::now();
        let mut state = self.state.lock();
        state.admit(&self.run_id, attempt)?;
        if let Some(data) = error {
            state.push(EventName::Borrowed("error"), data.into(), now, limits);
        }
        Ok(state.finish(kind, now))
    }

    /// Ends the run as cancelled, whichever attempt owns it; `None` if it had ended before.
    pub(super) fn cancel(&self) -> Option<usize> {
        let mut state = self.state.lock();
        match state.status {
            StreamStatus::Ended(_) => None,
            StreamStatus::Active | StreamStatus::AwaitingInput => {
                Some(state.finish(TerminalKind::Cancel, Instant::now()))
            }
        }
    }

    /// Suspends the idle limit until the next publish.
    pub(super) fn await_input(&self) {
        let mut state = self.state.lock();
        if state.status == StreamStatus::Active {
            state.status = StreamStatus::AwaitingInput;
        }
    }

    /// Sets the expiry to `at`, unless an earlier one is set.
    pub(super) fn expire_at(&self, at: Instant) {
        let mut state = self.state.lock();
        state.expire_at = Some(state.expire_at.map_or(at, |before| before.min(at)));
    }

    /// Reports whether the bridge may remove this run.
    pub(super) fn is_expired(&self, now: Instant, options: &InMemoryOptions) -> bool {
        self.state.lock().is_expired(now, options)
    }

    /// Marks the log as removed from the bridge: no more events are published. The caller notifies
    /// the viewers of an urgent change.
    pub(super) fn retire(&self) {
        self.state.lock().retired = true;
    }

    /// Evicts all events but the newest. Viewers that have not read the evicted events get a gap.
    pub(super) fn evict_all_but_newest(&self) {
        let mut state = self.state.lock();
        state.entries.evict_all_but_newest();
    }

    /// Resolves the position that a viewer requests.
    pub(super) fn locate(&self, from: ResumeFrom) -> Located {
        let state = self.state.lock();
        match state.locate(from) {
            Some(seq) => Located::At(seq, state.status),
            None => {
                let requested = match from {
                    ResumeFrom::After(id) => Some(id),
                    ResumeFrom::Start | ResumeFrom::Tail => None,
                };
                Located::Gap(state.gap(&self.run_id, requested))
            }
        }
    }

    /// Moves events from sequence number `next` on into `batch`. `last` is the last event that the
    /// viewer has seen, for the gap.
    pub(super) fn read(
        &self,
        next: u64,
        last: Option<EventId>,
        batch: &mut VecDeque<Entry>,
    ) -> ReadResult {
        let state = self.state.lock();
        let Some(skip) = next.checked_sub(state.first_seq()) else {
            return ReadResult::Gap(state.gap(&self.run_id, last));
        };
        let mut bytes = 0;
        // `skip` does not exceed the length, so the conversion succeeds: `locate` rejects a cursor
        // ahead of the tail.
        let skip = usize::try_from(skip)
            .unwrap_or(usize::MAX)
            .min(state.entries.len());
        for entry in state.entries.range(skip).take(BATCH_EVENTS) {
            bytes += entry.event.data.len();
            if bytes > BATCH_BYTES && !batch.is_empty() {
                break;
            }
            batch.push_back(entry);
        }
        if !batch.is_empty() {
            return ReadResult::Events;
        }
        match state.status {
            StreamStatus::Ended(kind) => ReadResult::Ended(kind),
            StreamStatus::Active | StreamStatus::AwaitingInput if state.retired => {
                ReadResult::Abandoned
            }
            StreamStatus::Active | StreamStatus::AwaitingInput => ReadResult::NoEvents,
        }
    }
}

impl State {
    /// Returns the sequence number of the oldest retained event, or of the next one if none is
    /// retained.
    pub(super) fn first_seq(&self) -> u64 {
        self.next_seq - self.entries.len() as u64
    }

    fn admit(&mut self, run_id: &RunId, attempt: u32) -> Result<(), BridgeError> {
        if attempt < self.attempt {
            return Err(BridgeError::Fenced {
                run_id: run_id.clone(),
                attempt,
                current: self.attempt,
            });
        }
        if let StreamStatus::Ended(_) = self.status {
            return Err(BridgeError::Ended(run_id.clone()));
        }
        self.attempt = attempt;
        Ok(())
    }

    fn push(
        &mut self,
        event: EventName,
        data: EventData,
        now: Instant,
        limits: &Limits,
    ) -> EventId {
        let id = EventId {
            seq: self.next_seq,
            attempt: self.attempt,
        };
        let entry = Entry {
            event: StreamEvent { id, event, data },
            at: now,
        };
        self.entries.push(entry);
        self.next_seq += 1;
        self.status = StreamStatus::Active;
        self.changed_at = now;
        self.trim(limits);
        id
    }

    fn finish(&mut self, kind: TerminalKind, now: Instant) -> usize {
        self.status = StreamStatus::Ended(kind);
        self.changed_at = now;
        self.entries.finish();
        self.entries.bytes()
    }

    /// Returns the first sequence number that `from` refers to, if it is retained.
    fn locate(&self, from: ResumeFrom) -> Option<u64> {
        match from {
            ResumeFrom::Tail => Some(self.next_seq),
            ResumeFrom::Start => (self.first_seq() == 1).then_some(1),
            ResumeFrom::After(id) => self.locate_after(id),
        }
    }

    fn locate_after(&self, id: EventId) -> Option<u64> {
        let next = id.seq.checked_add(1)?;
        if next > self.next_seq {
            // The cursor is from an attempt of a lost process, which had published more events than
            // the newer attempt.
            let began_after = self
                .entries
                .first_id()
                .is_some_and(|first| first.attempt > id.attempt);
            return (began_after && self.first_seq() == 1).then_some(1);
        }
        if next < self.first_seq() {
            return None;
        }
        let Some(known) = next
            .checked_sub(self.first_seq() + 1)
            .and_then(|i| self.entries.attempt_at(usize::try_from(i).ok()?))
        else {
            // The event of the cursor itself is evicted, or the cursor is 0; the event after it is
            // retained.
            return Some(next);
        };
        if id.attempt == known {
            return Some(next);
        }
        if id.attempt > known {
            return None;
        }
        // The viewer saw an event of a superseded attempt at this position: replay the newer
        // attempt from its beginning.
        let newer = self.entries.up_to_attempt(id.attempt);
        (newer > 0 || self.first_seq() == 1).then_some(self.first_seq() + newer as u64)
    }

    pub(super) fn gap(&self, run_id: &RunId, requested: Option<EventId>) -> Gap {
        // A run that ended without an event has no bounds; clients take `0-0` as the start.
        let no_event = EventId { seq: 0, attempt: 0 };
        Gap::new(
            run_id,
            requested,
            self.entries.first_id().unwrap_or(no_event),
            self.entries.last_id().unwrap_or(no_event),
        )
    }

    fn is_expired(&self, now: Instant, options: &InMemoryOptions) -> bool {
        let silence = now.saturating_duration_since(self.changed_at);
        match self.status {
            StreamStatus::Active => silence >= options.idle_stream_ttl,
            StreamStatus::AwaitingInput => false,
            StreamStatus::Ended(_) => {
                silence >= options.retention_after_end || self.expire_at.is_some_and(|at| at <= now)
            }
        }
    }
}
