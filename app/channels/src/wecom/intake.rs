//! Events that wait for the inbox. The platform does not redeliver, so they are offered until the
//! inbox takes them.

use std::collections::VecDeque;
use std::pin::Pin;
use std::time::Duration;

use tokio::time::Instant;

use crate::platform::{Event, EventSink, SinkError};

/// Number of events above which the socket is not read.
const MAX_WAITING: usize = 256;
/// Number of events that are offered together.
const MAX_OFFERED: usize = 32;
/// Delay after the inbox refused events.
const RETRY_DELAY: Duration = Duration::from_secs(1);

type Accepting<'a> = Pin<Box<dyn Future<Output = Result<(), SinkError>> + Send + 'a>>;

/// Events that the inbox is storing.
struct Offer<'a> {
    events: Vec<Event>,
    accepting: Accepting<'a>,
}

/// Events that wait for the inbox.
pub(super) struct Intake<'a> {
    sink: &'a dyn EventSink,
    waiting: VecDeque<Event>,
    offer: Option<Offer<'a>>,
    /// Time before which nothing is offered.
    pause: Option<Instant>,
}

impl<'a> Intake<'a> {
    /// Creates a queue with the events of an earlier connection.
    pub(super) fn new(sink: &'a dyn EventSink, backlog: Vec<Event>) -> Self {
        Self {
            sink,
            waiting: backlog.into(),
            offer: None,
            pause: None,
        }
    }

    /// Adds an event.
    pub(super) fn add(&mut self, event: Event) {
        self.waiting.push_back(event);
    }

    /// Returns whether more events may be added.
    pub(super) fn has_room(&self) -> bool {
        self.waiting.len() < MAX_WAITING
    }

    fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.offer.is_none()
    }

    /// Offers events once, or waits for ever if there are none. Safe to cancel.
    ///
    /// # Errors
    /// [`SinkError::Fenced`] only.
    pub(super) async fn advance(&mut self) -> Result<(), SinkError> {
        if self.is_empty() {
            return std::future::pending().await;
        }
        if let Some(pause) = self.pause {
            tokio::time::sleep_until(pause).await;
            self.pause = None;
        }
        let sink = self.sink;
        let waiting = &mut self.waiting;
        let offer = self.offer.get_or_insert_with(|| {
            let count = waiting.len().min(MAX_OFFERED);
            let events: Vec<Event> = waiting.drain(..count).collect();
            let accepting = sink.accept(events.clone(), None);
            Offer { events, accepting }
        });
        let result = offer.accepting.as_mut().await;
        let events = self.offer.take().map(|offer| offer.events);
        match result {
            Ok(()) => Ok(()),
            Err(SinkError::Fenced) => Err(SinkError::Fenced),
            Err(error) => {
                tracing::warn!(%error, "messages of wecom wait for the inbox");
                self.put_back(events.unwrap_or_default());
                self.pause = Some(Instant::now() + RETRY_DELAY);
                Ok(())
            }
        }
    }

    fn put_back(&mut self, events: Vec<Event>) {
        for event in events.into_iter().rev() {
            self.waiting.push_front(event);
        }
    }

    /// Offers events until none waits.
    pub(super) async fn drain(&mut self) -> Result<(), SinkError> {
        while !self.is_empty() {
            self.advance().await?;
        }
        Ok(())
    }

    /// Returns the events that the inbox has not stored, as far as is known.
    pub(super) fn into_rest(mut self) -> Vec<Event> {
        if let Some(offer) = self.offer.take() {
            self.put_back(offer.events);
        }
        self.waiting.into()
    }
}

#[cfg(test)]
#[path = "intake_tests.rs"]
mod tests;
