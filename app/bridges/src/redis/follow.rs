//! The side of a log that follows another node's run: by looks at the server, and at the durable log where that has more.

use std::time::Duration;

use harness::runtime::stream_bridge::{EventId, LogPage, StreamEvent, StreamStatus};
use tokio::time::Instant;

use super::link::Look;
use super::log::{BATCH_EVENTS, Observed, RunLog, State};
use super::options::RedisOptions;
use super::outline::Outline;

/// How many events a node keeps of a run that it only follows, for the viewers that keep up.
const FOLLOWED_EVENTS: usize = 256;
const FOLLOWED_BYTES: usize = 512 * 1024;
/// After so long without news the durable log is asked, once. Less than what a viewer waits before the store is asked of the end.
const SILENCE: Duration = Duration::from_secs(2);

impl RunLog {
    /// After what to read on in the durable log: the server has less than was seen here, cannot be asked, or tells nothing new for
    /// so long that its last events may have gone there. Nobody else is to read until [`RunLog::observe_logged`].
    pub(super) fn lacks(&self, look: Option<&Look>) -> Option<EventId> {
        self.locked(|state| {
            if !state.durable || state.owner.is_some() || state.asking {
                return None;
            }
            let outline = look
                .filter(|look| look.whole)
                .and_then(|look| look.outline.as_ref());
            let short = outline.is_none_or(|outline| outline.tail < state.outline.tail);
            let silent = outline.is_some_and(|outline| {
                outline.tail == state.outline.tail && outline.ended().is_none()
            });
            state.asking =
                short || silent && !state.asked_in_silence && state.changed_at.elapsed() >= SILENCE;
            state.asking.then_some(state.outline.newest())
        })
    }

    /// The durable log has another attempt's event in the place of `seen`, and stands at `outline`. The caller rings.
    pub(super) fn start_over_after(&self, seen: EventId, outline: Outline) {
        self.locked(|state| {
            state.asking = false;
            if state.owner.is_none() && state.outline.newest() == seen {
                state.start_over(outline);
            }
        });
    }

    /// Takes in what the durable log has from `seen` on, or after it where it lacks that one; `None` when it did not answer. The caller
    /// rings.
    pub(super) fn observe_logged(&self, seen: EventId, page: Option<LogPage>) -> Observed {
        self.locked(|state| {
            state.asking = false;
            let Some(LogPage { mut events, end }) = page else {
                return Observed::Fine;
            };
            if state.owner.is_some() || state.outline.newest() != seen {
                return Observed::Fine;
            }
            let full = events.len() >= BATCH_EVENTS;
            let has_it = end.is_some() || !events.is_empty();
            events.retain(|event| event.id.seq > seen.seq);
            state.asked_in_silence = true;
            if has_it {
                state.lost_since = None;
            }
            let last = seen.seq + events.len() as u64;
            if !events.is_empty() {
                state.follow(events, Instant::now());
            }
            if let Some(kind) = end.filter(|_| state.outline.tail == last) {
                state.outline.status = StreamStatus::Ended(kind);
            }
            if full { Observed::More } else { Observed::Fine }
        })
    }
}

impl State {
    /// The stream was lost, and a later attempt went on from what was left: what viewers saw here is void, they come back.
    fn start_over(&mut self, outline: Outline) {
        self.generation += 1;
        self.entries.clear();
        self.bytes = 0;
        self.outline = outline;
    }

    /// Takes in those events that come next.
    fn follow(&mut self, events: Vec<StreamEvent>, now: Instant) {
        self.changed_at = now;
        self.asked_in_silence = false;
        for event in events {
            if event.id.seq == self.outline.tail + 1 {
                self.outline.append(event.id.attempt);
                self.take_in(event, now);
            }
        }
        while self.entries.len() > FOLLOWED_EVENTS
            || (self.bytes > FOLLOWED_BYTES && self.entries.len() > 1)
        {
            self.drop_oldest();
        }
    }

    pub(super) fn observe_as_follower(
        &mut self,
        look: Look,
        count: usize,
        options: &RedisOptions,
    ) -> Observed {
        let now = Instant::now();
        let Some(outline) = look
            .outline
            .filter(|outline| look.whole && outline.tail >= self.outline.tail)
        else {
            // Its owner may make it anew; what never comes back is a gap.
            let since = *self.lost_since.get_or_insert(now);
            self.gone |= now.saturating_duration_since(since) >= options.loss_patience;
            return Observed::Fine;
        };
        self.lost_since = None;
        self.gone = false;
        if outline == self.outline {
            return Observed::Fine;
        }
        if !outline.continues(&self.outline) {
            self.start_over(outline);
            return Observed::More;
        }
        let full = look.events.len() >= count;
        self.follow(look.events, now);
        if full && self.outline.tail < outline.tail {
            return Observed::More;
        }
        self.adopt(outline);
        Observed::Fine
    }
}

#[cfg(test)]
#[path = "follow_tests.rs"]
mod tests;
