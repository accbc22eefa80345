//! What this node holds of one run's stream: its outline, its newest events, and what it owes the server if it owns the run.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use harness::ids::RunId;
use harness::runtime::stream_bridge::{
    EventId, FanOut, Gap, Listener, LogOutline, ResumeFrom, StreamEvent, StreamStatus, TerminalKind,
};
use harness::runtime::tasks::Tasks;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::link::Look;
use super::options::RedisOptions;
use super::outline::Outline;
use super::owner::Owner;

/// How much a viewer takes from the log under one lock.
pub(super) const BATCH_EVENTS: usize = 64;
const BATCH_BYTES: usize = 64 * 1024;

/// An event and since when this node shows it.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) event: StreamEvent,
    pub(super) at: Instant,
}

impl Entry {
    pub(super) fn size(&self) -> usize {
        size_of::<Self>() + self.event.event.len() + self.event.data.own_len()
    }
}

/// What a viewer finds after its cursor.
#[derive(Debug)]
pub(super) enum Read {
    /// At least one event.
    Events,
    /// Events that only the server or the durable log holds: so many may be asked for at once.
    AtTheServer(usize),
    /// Nothing yet.
    Nothing,
    /// Everything was read, and the run has ended.
    Ended(TerminalKind),
    /// What comes next is no longer kept.
    Gap(Gap),
    /// The producer is lost, or what this viewer saw was taken back.
    Abandoned,
}

/// What a look at the server is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wants {
    /// So many events from this number on: the stream is somebody else's.
    Events(u64, usize),
    /// Whether the server still has what it has said that it has, up to this number. What it says later it need not know yet.
    Kept(u64),
}

impl Wants {
    /// The events to ask for.
    pub(super) fn events(self) -> Option<(u64, usize)> {
        match self {
            Self::Events(from, count) => Some((from, count)),
            Self::Kept(_) => None,
        }
    }
}

/// What is to be done after a look at the server.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Observed {
    /// Nothing.
    Fine,
    /// Look again: there is more.
    More,
    /// The server lost what this node has: it is to be sent again.
    Lost,
}

/// One run's log on this node.
#[derive(Debug)]
pub(super) struct RunLog {
    run_id: RunId,
    state: Mutex<State>,
    viewers: FanOut,
    /// Wakes who sends this log to the server.
    pub(super) urge: Notify,
    /// Bytes that all logs of this node hold.
    held: Arc<AtomicUsize>,
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) outline: Outline,
    /// The newest events, up to the tail.
    pub(super) entries: VecDeque<Entry>,
    pub(super) bytes: usize,
    /// Present on the node that publishes.
    pub(super) owner: Option<Owner>,
    /// The newest attempt that this node has asked the server for.
    pub(super) claiming: u32,
    /// Rises when viewers may have seen what is no longer true.
    pub(super) generation: u32,
    pub(super) changed_at: Instant,
    pub(super) lost_since: Option<Instant>,
    pub(super) gone: bool,
    retired: bool,
    /// The durable log was asked whether it has more since the last change.
    pub(super) asked_in_silence: bool,
    /// Somebody reads the durable log.
    pub(super) asking: bool,
    /// There is a durable log beside the server, which may have what that does not keep.
    pub(super) durable: bool,
}

impl RunLog {
    /// The log of a run whose stream stands at `outline`.
    pub(super) fn new(
        run_id: RunId,
        outline: Outline,
        held: Arc<AtomicUsize>,
        durable: bool,
        tasks: Tasks,
    ) -> Self {
        let state = State {
            outline,
            entries: VecDeque::new(),
            bytes: 0,
            owner: None,
            claiming: 0,
            generation: 0,
            changed_at: Instant::now(),
            lost_since: None,
            gone: false,
            retired: false,
            asked_in_silence: false,
            asking: false,
            durable,
        };
        Self {
            run_id,
            state: Mutex::new(state),
            viewers: FanOut::new(tasks),
            urge: Notify::new(),
            held,
        }
    }

    pub(super) fn run_id(&self) -> &RunId {
        &self.run_id
    }

    /// The state, and account for what changes in it.
    pub(super) fn locked<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        let mut state: MutexGuard<'_, State> = self.state.lock();
        let before = state.bytes;
        let done = act(&mut state);
        match state.bytes.checked_sub(before) {
            Some(0) => {}
            Some(more) => _ = self.held.fetch_add(more, Ordering::Relaxed),
            None => _ = self.held.fetch_sub(before - state.bytes, Ordering::Relaxed),
        }
        done
    }

    /// Tells everybody who waits for a change. No lock is to be held.
    pub(super) fn ring(&self) {
        self.viewers.tell();
    }

    /// Hears of every change after this call.
    pub(super) fn listen(&self) -> Listener {
        self.viewers.listen()
    }

    pub(super) fn is_owned(&self) -> bool {
        self.locked(|state| state.owner.is_some())
    }

    pub(super) fn has_ended(&self) -> bool {
        self.locked(|state| state.outline.ended().is_some())
    }

    /// Whether an event is the first of its attempt.
    pub(super) fn begins_with(&self, event: EventId) -> bool {
        self.locked(|state| state.outline.begins_with(event))
    }

    /// Which of its histories this log shows.
    pub(super) fn generation(&self) -> u32 {
        self.locked(|state| state.generation)
    }

    /// Where a viewer that asks for `from` begins.
    pub(super) fn locate(&self, from: ResumeFrom) -> Located {
        self.locked(|state| match state.outline.locate(from) {
            Some(next) => Located::At(Place {
                next,
                ended: state.shown_end(),
                generation: state.generation,
            }),
            None => Located::Gap(state.outline.gap(&self.run_id, cursor_of(from))),
        })
    }

    /// The same, when the durable log has `logged`.
    pub(super) fn place_with(&self, from: ResumeFrom, logged: &LogOutline) -> Option<Place> {
        self.locked(|state| {
            let next = state.outline.clone().with(logged).locate(from)?;
            Some(Place {
                next,
                ended: state.shown_end(),
                generation: state.generation,
            })
        })
    }

    /// Moves events from sequence number `next` on into `batch`. `last` is what the viewer has seen, for the gap.
    pub(super) fn read(
        &self,
        next: u64,
        generation: u32,
        last: Option<EventId>,
        batch: &mut VecDeque<Entry>,
    ) -> Read {
        self.locked(|state| state.read(&self.run_id, next, generation, last, batch))
    }

    /// What to ask the server of this run: a follower wants the events after those it has.
    pub(super) fn wants(&self) -> Wants {
        self.locked(|state| match &state.owner {
            None => Wants::Events(state.outline.tail + 1, BATCH_EVENTS),
            Some(owner) => Wants::Kept(owner.acked),
        })
    }

    /// Takes in where the stream stands, as somebody else's.
    pub(super) fn learn(&self, outline: Outline) {
        self.locked(|state| {
            if state.owner.is_none() && outline.tail >= state.outline.tail {
                state.adopt(outline);
            }
        });
    }

    /// Takes in what a look at the server showed. The caller rings.
    pub(super) fn observe(&self, look: Look, asked: Wants, options: &RedisOptions) -> Observed {
        self.locked(|state| match (state.owner.is_some(), asked) {
            (true, Wants::Kept(known)) => {
                state.observe_as_owner(look.outline.filter(|_| look.whole), known)
            }
            (false, Wants::Events(_, count)) => state.observe_as_follower(look, count, options),
            // It changed hands meanwhile.
            _ => Observed::Fine,
        })
    }

    /// Whether nobody published for so long that nobody will.
    pub(super) fn is_idle(&self, options: &RedisOptions) -> bool {
        self.locked(|state| {
            let open = state.outline.status == StreamStatus::Active
                && !state.owner.as_ref().is_some_and(Owner::is_at_work);
            open && state.changed_at.elapsed() >= options.idle_stream_ttl
        })
    }

    /// The bridge no longer knows this log. The caller rings: nobody will publish to it.
    pub(super) fn retire(&self) {
        self.locked(|state| {
            state.retired = true;
            state.owner = None;
        });
    }

    /// Gives up to `wanted` bytes back: first what the server has, with `all` also what it has not. Keeps the newest event.
    pub(super) fn release(&self, wanted: usize, all: bool) -> usize {
        self.locked(|state| {
            let before = state.bytes;
            while state.entries.len() > 1 && before - state.bytes < wanted {
                let oldest = state.base();
                if state
                    .owner
                    .as_ref()
                    .is_some_and(|owner| oldest > owner.safe())
                {
                    if !all {
                        break;
                    }
                    state.outline.first = oldest + 1;
                }
                state.drop_oldest();
            }
            before - state.bytes
        })
    }
}

impl Drop for RunLog {
    fn drop(&mut self) {
        self.held
            .fetch_sub(self.state.get_mut().bytes, Ordering::Relaxed);
    }
}

/// Where a cursor stands.
#[derive(Debug)]
pub(super) enum Located {
    /// Within what is kept.
    At(Place),
    /// Nowhere.
    Gap(Gap),
}

/// Where a viewer begins, and how the stream ended if it did.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) next: u64,
    pub(super) ended: Option<TerminalKind>,
    pub(super) generation: u32,
}

/// The event that a cursor names.
pub(super) fn cursor_of(from: ResumeFrom) -> Option<EventId> {
    match from {
        ResumeFrom::After(id) => Some(id),
        ResumeFrom::Start | ResumeFrom::Tail => None,
    }
}

impl State {
    /// The sequence number of the oldest event in memory, or of the next one when none is.
    pub(super) fn base(&self) -> u64 {
        self.outline.tail + 1 - self.entries.len() as u64
    }

    pub(super) fn take_in(&mut self, event: StreamEvent, now: Instant) {
        let entry = Entry { event, at: now };
        self.bytes += entry.size();
        self.entries.push_back(entry);
    }

    pub(super) fn drop_oldest(&mut self) {
        if let Some(oldest) = self.entries.pop_front() {
            self.bytes -= oldest.size();
        }
    }

    pub(super) fn drop_newest(&mut self) {
        if let Some(newest) = self.entries.pop_back() {
            self.bytes -= newest.size();
        }
    }

    /// Makes `outline` the truth; what is in memory stays only if it ends where that ends.
    pub(super) fn adopt(&mut self, outline: Outline) {
        if self
            .entries
            .back()
            .is_some_and(|newest| newest.event.id != outline.newest())
        {
            self.entries.clear();
            self.bytes = 0;
        }
        self.outline = outline;
        while self.base() < self.outline.first && !self.entries.is_empty() {
            self.drop_oldest();
        }
    }

    /// The newest event that viewers may see: it is in the server's log or the durable one, or both have been out of order for a while.
    fn reach(&self) -> u64 {
        match &self.owner {
            Some(owner) if !owner.shows_what_waits() => owner.safe(),
            _ => self.outline.tail,
        }
    }

    fn shown_end(&self) -> Option<TerminalKind> {
        self.outline.ended().or_else(|| {
            self.owner
                .as_ref()
                .filter(|owner| owner.shows_its_end())?
                .end
        })
    }

    fn read(
        &mut self,
        run_id: &RunId,
        next: u64,
        generation: u32,
        last: Option<EventId>,
        batch: &mut VecDeque<Entry>,
    ) -> Read {
        if generation != self.generation {
            return Read::Abandoned;
        }
        if self.gone || (next < self.outline.first && !self.durable) {
            return Read::Gap(self.outline.gap(run_id, last));
        }
        let reach = self.reach();
        if next > reach {
            // A later attempt has not come, or will not come, as far as an earlier one had.
            let beyond = next > self.outline.tail + 1
                && last.is_some_and(|last| last.attempt < self.outline.newest().attempt);
            return match self.shown_end() {
                _ if beyond => Read::Abandoned,
                Some(_) if next > self.outline.tail + 1 => Read::Abandoned,
                Some(kind) => Read::Ended(kind),
                None if self.retired => Read::Abandoned,
                None => Read::Nothing,
            };
        }
        let Some(skip) = next
            .checked_sub(self.base())
            .and_then(|skip| usize::try_from(skip).ok())
        else {
            return Read::AtTheServer(self.outline.page());
        };
        let mut bytes = 0;
        for entry in self
            .entries
            .range(skip..)
            .take(BATCH_EVENTS)
            .take_while(|entry| entry.event.id.seq <= reach)
        {
            bytes += entry.event.data.len();
            if bytes > BATCH_BYTES && !batch.is_empty() {
                break;
            }
            batch.push_back(entry.clone());
        }
        Read::Events
    }
}
