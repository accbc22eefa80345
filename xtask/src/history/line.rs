//! Format of one history line.

use std::fmt;

use serde::Deserialize;

/// Time and operation.
#[derive(Debug, Deserialize)]
pub(super) struct Line {
    /// Microseconds since the start of the history, by a monotonic clock.
    pub(super) at: u64,
    #[serde(flatten)]
    pub(super) operation: Operation,
}

/// Operation or observation of a client.
#[derive(Debug, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
pub(super) enum Operation {
    /// Requests a run.
    Asked {
        call: String,
        thread: String,
        input: String,
    },
    /// The run was accepted.
    Accepted { call: String, run: String },
    /// The run was rejected.
    Refused { call: String },
    /// Starts to follow a run, after an event or from the beginning.
    Opened {
        viewer: String,
        run: String,
        after: Option<EventId>,
    },
    /// Receives an event, possibly with a fragment of a message.
    Event {
        viewer: String,
        id: EventId,
        event: String,
        message: Option<String>,
        text: Option<String>,
    },
    /// Receives the end of the run.
    Ended { viewer: String },
    /// Receives a notice that events are missing.
    Gap { viewer: String },
    /// The connection breaks.
    Broke { viewer: String },
    /// Reads the status of a run; `gone` if it does not exist.
    ReadRun { run: String, status: String },
    /// Reads the messages of a thread.
    ReadThread {
        thread: String,
        messages: Vec<Message>,
    },
    /// The model returned a complete answer.
    Said { text: String },
}

/// Message of a thread.
#[derive(Debug, Deserialize)]
pub(super) struct Message {
    /// `human`, `ai` or `tool`.
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) id: Option<String>,
    pub(super) text: String,
}

/// Event id as on the wire, `number-attempt`.
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
