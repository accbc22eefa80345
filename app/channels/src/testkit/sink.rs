//! Event sink in memory with scripted refusals.

use std::collections::VecDeque;

use async_trait::async_trait;
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::platform::{Event, EventBody, EventSink, SinkError};

/// Contents of a sink.
#[derive(Debug, Default)]
struct Recorded {
    /// Stored events in order, redeliveries included.
    events: Vec<Event>,
    cursor: Option<String>,
    /// Answers to the next batches.
    refusals: VecDeque<SinkError>,
    /// Answer to every batch.
    closed: Option<SinkError>,
    offered: usize,
    connections: usize,
}

/// Sink that stores events in memory and refuses batches as scripted.
#[derive(Debug, Default)]
pub struct RecordingSink {
    recorded: Mutex<Recorded>,
    changed: Notify,
}

impl RecordingSink {
    /// Creates a sink that refuses the first batches with these errors.
    pub fn refusing(errors: impl IntoIterator<Item = SinkError>) -> Self {
        let sink = Self::default();
        sink.refuse(errors);
        sink
    }

    /// Refuses the next batches with these errors.
    pub fn refuse(&self, errors: impl IntoIterator<Item = SinkError>) {
        self.recorded.lock().refusals.extend(errors);
    }

    /// Refuses every batch with an error from now on, or stores again.
    pub fn close(&self, error: impl Into<Option<SinkError>>) {
        self.recorded.lock().closed = error.into();
    }

    /// Returns the stored events. An event that was stored twice is listed once.
    pub fn events(&self) -> Vec<Event> {
        let mut distinct: Vec<Event> = Vec::new();
        for event in &self.recorded.lock().events {
            let is_same = |known: &Event| {
                (&known.workspace, &known.chat.id, &known.id)
                    == (&event.workspace, &event.chat.id, &event.id)
            };
            if !distinct.iter().any(is_same) {
                distinct.push(event.clone());
            }
        }
        distinct
    }

    /// Returns the texts of [`Self::events`]; a press is its data with the prefix `press `.
    pub fn texts(&self) -> Vec<String> {
        let text = |event: Event| match event.body {
            EventBody::Message(message) => message.text,
            EventBody::Press(press) => format!("press {}", press.data),
            other => format!("{other:?}"),
        };
        self.events().into_iter().map(text).collect()
    }

    /// Returns the newest stored cursor.
    pub fn cursor(&self) -> Option<String> {
        self.recorded.lock().cursor.clone()
    }

    /// Returns the number of batches that were offered, refused ones included.
    pub fn offered(&self) -> usize {
        self.recorded.lock().offered
    }

    /// Returns the number of reported connections.
    pub fn connections(&self) -> usize {
        self.recorded.lock().connections
    }

    /// Waits until a condition holds. The caller limits the time.
    pub async fn wait_until(&self, mut holds: impl FnMut(&Self) -> bool) {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if holds(self) {
                return;
            }
            changed.await;
        }
    }

    /// Waits until this many connections were reported.
    pub async fn wait_connected(&self, times: usize) {
        self.wait_until(|sink| sink.connections() >= times).await;
    }

    /// Waits until this many different events are stored, and returns them.
    pub async fn wait_events(&self, count: usize) -> Vec<Event> {
        self.wait_until(|sink| sink.events().len() >= count).await;
        self.events()
    }
}

#[async_trait]
impl EventSink for RecordingSink {
    fn connected(&self) {
        self.recorded.lock().connections += 1;
        self.changed.notify_waiters();
    }

    async fn accept(&self, events: Vec<Event>, cursor: Option<String>) -> Result<(), SinkError> {
        let refused = {
            let mut recorded = self.recorded.lock();
            recorded.offered += 1;
            let refused = recorded.closed.or_else(|| recorded.refusals.pop_front());
            if refused.is_none() {
                recorded.events.extend(events);
                if cursor.is_some() {
                    recorded.cursor = cursor;
                }
            }
            refused
        };
        self.changed.notify_waiters();
        refused.map_or(Ok(()), Err)
    }
}
