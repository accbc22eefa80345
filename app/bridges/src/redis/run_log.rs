//! A node's copy of one run's stream: its head, its newest events, and the publisher state if this
//! node publishes the run.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use deerflow_core::ids::RunId;
use deerflow_core::tasks::Tasks;
use deerflow_runtime::stream_bridge::{
    EventId, FanOut, Gap, Listener, LogOutline, ResumeFrom, StreamStatus, TerminalKind,
};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;

use super::durable_log_reads::DurableLogReads;
use super::options::RedisOptions;
use super::poll::{PollOutcome, PollRequest};
use super::protocol::StreamSnapshot;
use super::publisher::Publisher;
use super::stream_head::StreamHead;
use super::stream_state::{BATCH_EVENTS, Entry, ReadOutcome, StreamState};

/// One run's log on this node.
#[derive(Debug)]
pub(super) struct RunLog {
    run_id: RunId,
    state: Mutex<StreamState>,
    viewers: FanOut,
    /// Wakes the sender.
    pub(super) sender_wakeup: Notify,
    /// Bytes of all logs of this node.
    total_bytes: Arc<AtomicUsize>,
}

impl RunLog {
    /// Creates the log of a run whose stream is at `head`.
    pub(super) fn new(
        run_id: RunId,
        head: StreamHead,
        total_bytes: Arc<AtomicUsize>,
        durable: bool,
        tasks: Tasks,
    ) -> Self {
        Self {
            run_id,
            state: Mutex::new(StreamState::new(head, DurableLogReads::of(durable))),
            viewers: FanOut::new(tasks),
            sender_wakeup: Notify::new(),
            total_bytes,
        }
    }

    pub(super) fn run_id(&self) -> &RunId {
        &self.run_id
    }

    /// Runs `act` on the locked state and updates the byte counter.
    pub(super) fn locked<T>(&self, act: impl FnOnce(&mut StreamState) -> T) -> T {
        let mut state: MutexGuard<'_, StreamState> = self.state.lock();
        let before = state.bytes;
        let result = act(&mut state);
        match state.bytes.checked_sub(before) {
            Some(0) => {}
            Some(more) => _ = self.total_bytes.fetch_add(more, Ordering::Relaxed),
            None => {
                _ = self
                    .total_bytes
                    .fetch_sub(before - state.bytes, Ordering::Relaxed)
            }
        }
        result
    }

    /// Notifies all viewers of a change. The caller must not hold a lock.
    pub(super) fn notify_viewers(&self) {
        self.viewers.notify();
    }

    /// Subscribes to changes after this call.
    pub(super) fn subscribe_changes(&self) -> Listener {
        self.viewers.listen()
    }

    pub(super) fn is_publisher(&self) -> bool {
        self.locked(|state| state.publisher.is_some())
    }

    pub(super) fn has_ended(&self) -> bool {
        self.locked(|state| state.head.ended().is_some())
    }

    /// Returns `true` if `event` is the first of its attempt.
    pub(super) fn begins_with(&self, event: EventId) -> bool {
        self.locked(|state| state.head.begins_with(event))
    }

    /// Returns the generation of this log's history, which changes when events that viewers saw are
    /// revoked.
    pub(super) fn generation(&self) -> u32 {
        self.locked(|state| state.generation)
    }

    /// Locates the start position of a viewer.
    pub(super) fn locate(&self, from: ResumeFrom) -> Located {
        self.locked(|state| match state.head.locate(from) {
            Some(next) => Located::At(StreamPosition {
                next,
                ended: state.visible_end(),
                generation: state.generation,
            }),
            None => Located::Gap(state.head.gap(&self.run_id, cursor_of(from))),
        })
    }

    /// Locates the start position, including the events of the durable log.
    pub(super) fn position_with(
        &self,
        from: ResumeFrom,
        logged: &LogOutline,
    ) -> Option<StreamPosition> {
        self.locked(|state| {
            let next = state.head.clone().with(logged).locate(from)?;
            Some(StreamPosition {
                next,
                ended: state.visible_end(),
                generation: state.generation,
            })
        })
    }

    /// Moves events from sequence number `next` on into `batch`. `last` is the last event that the
    /// viewer saw, for the gap.
    pub(super) fn read(
        &self,
        next: u64,
        generation: u32,
        last: Option<EventId>,
        batch: &mut VecDeque<Entry>,
    ) -> ReadOutcome {
        self.locked(|state| state.read(&self.run_id, next, generation, last, batch))
    }

    /// Returns the poll request for this run: a follower requests the events after those it has.
    pub(super) fn poll_request(&self) -> PollRequest {
        self.locked(|state| match &state.publisher {
            None => PollRequest::Events(state.head.tail + 1, BATCH_EVENTS),
            Some(publisher) => PollRequest::VerifyUpTo(publisher.acked),
        })
    }

    /// Adopts the head of a stream that another node publishes, unless it is older than the current
    /// one.
    pub(super) fn adopt_if_newer(&self, head: StreamHead) {
        self.locked(|state| {
            if state.publisher.is_none() && head.tail >= state.head.tail {
                state.adopt(head);
            }
        });
    }

    /// Applies a poll result. The caller notifies viewers.
    pub(super) fn observe(
        &self,
        snapshot: StreamSnapshot,
        request: PollRequest,
        options: &RedisOptions,
    ) -> PollOutcome {
        self.locked(|state| match (state.publisher.is_some(), request) {
            (true, PollRequest::VerifyUpTo(known)) => {
                state.observe_as_publisher(snapshot.head.filter(|_| snapshot.complete), known)
            }
            (false, PollRequest::Events(_, count)) => {
                state.observe_as_follower(snapshot, count, options)
            }
            // The publisher changed since the poll was sent.
            _ => PollOutcome::UpToDate,
        })
    }

    /// Returns `true` if no event was published for longer than the idle timeout.
    pub(super) fn is_idle(&self, options: &RedisOptions) -> bool {
        self.locked(|state| {
            let open = state.head.status == StreamStatus::Active
                && !state.publisher.as_ref().is_some_and(Publisher::is_sending);
            open && state.changed_at.elapsed() >= options.idle_stream_ttl
        })
    }

    /// Marks the log as abandoned: no more events will come. The caller notifies viewers.
    pub(super) fn retire(&self) {
        self.locked(|state| {
            state.retired = true;
            state.publisher = None;
        });
    }

    /// Evicts up to `target` bytes and returns the number of evicted bytes. Evicts stored events
    /// only, or with `all` also unsent ones. Never evicts the newest event.
    pub(super) fn evict(&self, target: usize, all: bool) -> usize {
        self.locked(|state| {
            let before = state.bytes;
            while state.entries.len() > 1 && before - state.bytes < target {
                let oldest = state.base();
                if state
                    .publisher
                    .as_ref()
                    .is_some_and(|publisher| oldest > publisher.stored_up_to())
                {
                    if !all {
                        break;
                    }
                    state.head.first = oldest + 1;
                }
                state.drop_oldest();
            }
            before - state.bytes
        })
    }
}

impl Drop for RunLog {
    fn drop(&mut self) {
        self.total_bytes
            .fetch_sub(self.state.get_mut().bytes, Ordering::Relaxed);
    }
}

/// Location of a cursor.
#[derive(Debug)]
pub(super) enum Located {
    /// Within the stored events.
    At(StreamPosition),
    /// Outside of the stored events.
    Gap(Gap),
}

/// Start position of a viewer, and the end of the stream if it has ended.
#[derive(Debug)]
pub(super) struct StreamPosition {
    pub(super) next: u64,
    pub(super) ended: Option<TerminalKind>,
    pub(super) generation: u32,
}

/// Returns the event that a cursor names.
pub(super) fn cursor_of(from: ResumeFrom) -> Option<EventId> {
    match from {
        ResumeFrom::After(id) => Some(id),
        ResumeFrom::Start | ResumeFrom::Tail => None,
    }
}
