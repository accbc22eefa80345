//! One line of a history.

use std::fmt;

use serde::Deserialize;

/// When something happened, and what.
#[derive(Debug, Deserialize)]
pub(super) struct Line {
    /// Microseconds since the history began, by a clock that only goes on.
    pub(super) at: u64,
    #[serde(flatten)]
    pub(super) operation: Operation,
}

/// What a client did or saw.
#[derive(Debug, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
pub(super) enum Operation {
    /// It asks for a run.
    Asked {
        call: String,
        thread: String,
        input: String,
    },
    /// It is told that the run is accepted.
    Accepted { call: String, run: String },
    /// It is told that there will be no such run.
    Refused { call: String },
    /// It follows a run, from behind an event or from the beginning.
    Opened {
        viewer: String,
        run: String,
        after: Option<EventId>,
    },
    /// It gets an event, and with it perhaps a piece of a message.
    Event {
        viewer: String,
        id: EventId,
        event: String,
        message: Option<String>,
        text: Option<String>,
    },
    /// It is told that the run has ended.
    Ended { viewer: String },
    /// It is told that events are missing.
    Gap { viewer: String },
    /// Its connection breaks.
    Broke { viewer: String },
    /// It reads how a run stands; `gone` when there is none.
    ReadRun { run: String, status: String },
    /// It reads what was said in a thread.
    ReadThread {
        thread: String,
        messages: Vec<Message>,
    },
    /// The model gave a whole answer.
    Said { text: String },
}

/// A message of a thread.
#[derive(Debug, Deserialize)]
pub(super) struct Message {
    /// `human`, `ai` or `tool`.
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) id: Option<String>,
    pub(super) text: String,
}

/// An event's id as it stands on the wire, `number-attempt`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct EventId {
    pub(super) number: u64,
    pub(super) attempt: u64,
}

impl TryFrom<String> for EventId {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let parts = text
            .split_once('-')
            .and_then(|(number, attempt)| Some((number.parse().ok()?, attempt.parse().ok()?)));
        parts
            .map(|(number, attempt)| Self { number, attempt })
            .ok_or_else(|| format!("{text:?} is no event id"))
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}-{}", self.number, self.attempt)
    }
}
