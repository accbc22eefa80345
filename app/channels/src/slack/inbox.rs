//! Events that wait to be stored, in order, and their acknowledgements.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::time::Instant;

use super::cursor::{Cursors, Place};
use super::text::is_timestamp;
use crate::platform::{Event, EventBody, EventSink, SinkError};

/// Maximum number of events that are stored at once.
const MAX_BATCH: usize = 100;
/// Maximum number of events that wait; more are dropped without an acknowledgement.
const MAX_WAITING: usize = 5_000;
/// Delay after a refused batch.
const RETRY: Duration = Duration::from_millis(200);

/// Acknowledgement that an event waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ack {
    /// Connection on which the envelope arrived.
    pub(super) link: u64,
    /// Envelope.
    pub(super) envelope: String,
    /// Instant at which it is too late.
    pub(super) deadline: Instant,
}

/// Event that waits.
#[derive(Debug)]
pub(super) struct Pending {
    /// Event.
    pub(super) event: Event,
    /// Acknowledgement, unless the event was fetched.
    pub(super) ack: Option<Ack>,
    /// Place from which it was fetched, and `true` for the last event of it.
    pub(super) fetched: Option<(Place, bool)>,
}

/// Batch whose storing has ended.
#[derive(Debug)]
pub(super) struct Landed {
    batch: Vec<(u64, Pending)>,
    result: Result<(), SinkError>,
}

/// Waiting events. At most one batch is stored at a time.
pub(super) struct Inbox<'a> {
    sink: &'a dyn EventSink,
    waiting: BTreeMap<u64, Pending>,
    next: u64,
    cursors: Cursors,
    /// Batch that is being stored.
    pub(super) flight: Option<BoxFuture<'a, Landed>>,
    /// Instant before which no batch is started.
    pub(super) not_before: Option<Instant>,
    /// `true` while events are stored one by one, so that a full conversation stops no other.
    single: bool,
    full_chats: HashSet<String>,
}

impl<'a> Inbox<'a> {
    /// Creates an empty inbox.
    pub(super) fn new(sink: &'a dyn EventSink, cursors: Cursors) -> Self {
        Self {
            sink,
            waiting: BTreeMap::new(),
            next: 0,
            cursors,
            flight: None,
            not_before: None,
            single: false,
            full_chats: HashSet::new(),
        }
    }

    /// Returns the number of waiting events.
    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Adds an event.
    pub(super) fn push(&mut self, pending: Pending) {
        if self.waiting.len() >= MAX_WAITING && pending.ack.is_some() {
            tracing::warn!("too many slack events wait, an event stays unacknowledged");
            return;
        }
        self.waiting.insert(self.next, pending);
        self.next += 1;
    }

    /// Ends the fetch of a place without messages.
    pub(super) fn nothing_in(&mut self, place: &Place) {
        self.cursors.fetched(place);
    }

    /// Starts to store the next batch, if none is being stored.
    pub(super) fn start(&mut self, now: Instant) {
        if self.flight.is_some() || self.not_before.is_some_and(|at| at > now) {
            return;
        }
        self.not_before = None;
        self.drop_late(now);
        let max = if self.single { 1 } else { MAX_BATCH };
        let free =
            |(_, pending): &(&u64, &Pending)| !self.full_chats.contains(&pending.event.chat.id);
        let numbers: Vec<u64> = self
            .waiting
            .iter()
            .filter(free)
            .take(max)
            .map(|(number, _)| *number)
            .collect();
        if numbers.is_empty() {
            self.full_chats.clear();
            if self.waiting.is_empty() {
                self.single = false;
            } else {
                self.not_before = Some(now + RETRY);
            }
            return;
        }
        let batch: Vec<(u64, Pending)> = numbers
            .into_iter()
            .filter_map(|number| Some((number, self.waiting.remove(&number)?)))
            .collect();
        let mut cursors = self.cursors.clone();
        advance(&mut cursors, &batch);
        let events = batch
            .iter()
            .map(|(_, pending)| pending.event.clone())
            .collect();
        let sink = self.sink;
        let store = async move {
            let result = sink.accept(events, Some(cursors.encode())).await;
            Landed { batch, result }
        };
        self.flight = Some(store.boxed());
    }

    /// Ends a batch and returns the acknowledgements to send.
    pub(super) fn land(&mut self, landed: Landed, now: Instant) -> Result<Vec<Ack>, SinkError> {
        self.flight = None;
        let Landed { batch, result } = landed;
        match result {
            Ok(()) => {
                advance(&mut self.cursors, &batch);
                let acks = batch.into_iter().filter_map(|(_, pending)| pending.ack);
                // A late acknowledgement has no effect; the redelivery gets one.
                Ok(acks.filter(|ack| ack.deadline > now).collect())
            }
            Err(SinkError::Fenced) => Err(SinkError::Fenced),
            Err(error) => {
                tracing::debug!(events = batch.len(), %error, "slack events were not stored");
                if error == SinkError::Full && batch.len() > 1 {
                    self.single = true;
                } else if error == SinkError::Full {
                    self.single = true;
                    let chats = batch
                        .iter()
                        .map(|(_, pending)| pending.event.chat.id.clone());
                    self.full_chats.extend(chats);
                } else {
                    self.not_before = Some(now + RETRY);
                }
                self.waiting.extend(batch);
                Ok(Vec::new())
            }
        }
    }

    fn drop_late(&mut self, now: Instant) {
        let before = self.waiting.len();
        self.waiting
            .retain(|_, pending| pending.ack.as_ref().is_none_or(|ack| ack.deadline > now));
        let dropped = before - self.waiting.len();
        if dropped > 0 {
            tracing::warn!(
                dropped,
                "slack events stay unacknowledged, slack sends them again"
            );
        }
    }
}

/// Advances the cursors behind stored events.
fn advance(cursors: &mut Cursors, batch: &[(u64, Pending)]) {
    for (_, pending) in batch {
        let event = &pending.event;
        if let EventBody::Message(message) = &event.body
            && is_timestamp(&event.id)
        {
            let place = pending.fetched.as_ref().map(|(place, _)| place);
            // The answer begins a thread, whose messages the history of the channel does not list.
            let begun = event.context["thread"]
                .as_str()
                .filter(|_| message.addressed);
            let thread = begun.or(message.reply_to.as_deref());
            cursors.store(&event.chat.id, thread, &event.id, place);
        }
        if let Some((place, true)) = &pending.fetched {
            cursors.fetched(place);
        }
    }
}

#[cfg(test)]
#[path = "inbox_tests.rs"]
mod tests;
