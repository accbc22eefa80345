//! Cursors: the position that a subscriber requests, and the position at which its stream starts.

use serde::{Deserialize, Serialize};

use super::event_id::{EventId, MalformedCursor};
use super::status::TerminalKind;

/// Position that a subscriber requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ResumeFrom {
    /// At the first event of the run.
    #[default]
    Start,
    /// After this event.
    After(EventId),
    /// At the next published event, without a replay.
    Tail,
}

impl ResumeFrom {
    /// Parses a `Last-Event-ID`. `-1` (sent by `useStream` when it rejoins), `-`, `0` and `0-0`
    /// mean the start.
    pub fn parse(cursor: &str) -> Result<Self, MalformedCursor> {
        match cursor.trim() {
            "-1" | "-" | "0" | "0-0" => Ok(Self::Start),
            text => text.parse().map(Self::After),
        }
    }
}

/// Hole in a replay. Field names are those of the wire; the web UI checks all of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap {
    /// Always `stream_replay_gap`.
    pub code: String,
    /// Id of the run.
    pub run_id: String,
    /// Requested cursor; null if the start was requested.
    pub requested_event_id: Option<String>,
    /// Oldest retained event.
    pub earliest_available_event_id: String,
    /// Newest retained event: the client rejoins after it once it has loaded the durable state.
    pub latest_available_event_id: String,
    /// Always `reload_durable_state`.
    pub recovery: String,
}

impl Gap {
    /// Creates the gap of `run_id` between `requested` and the retained events.
    pub fn new(
        run_id: &deerflow_core::ids::RunId,
        requested: Option<EventId>,
        earliest: EventId,
        latest: EventId,
    ) -> Self {
        Self {
            code: "stream_replay_gap".to_owned(),
            run_id: run_id.to_string(),
            requested_event_id: requested.map(|id| id.to_string()),
            earliest_available_event_id: earliest.to_string(),
            latest_available_event_id: latest.to_string(),
            recovery: "reload_durable_state".to_owned(),
        }
    }
}

/// Result of resolving a requested position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResumeResult {
    /// Events from this sequence number on, then live events.
    From(u64),
    /// A gap only.
    Gap,
    /// The run has ended; the retained events are replayed, then the end.
    Ended(TerminalKind),
    /// No such stream in this bridge: never opened, or removed.
    Unknown,
}
