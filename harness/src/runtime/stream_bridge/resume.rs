//! Cursors: where a subscriber wants to begin, and where it did.

use serde::{Deserialize, Serialize};

use super::event::{EventId, TerminalKind};

/// A cursor that is neither an event id nor one of the words for "from the start".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("malformed event id {0:?}: expected digits-digits, or -1 for the start")]
pub struct MalformedCursor(pub String);

/// Where a subscriber wants to begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ResumeFrom {
    /// With the first event of the run.
    #[default]
    Start,
    /// With the first event after this one.
    After(EventId),
    /// With whatever comes next; nothing is replayed.
    Tail,
}

impl ResumeFrom {
    /// Reads a `Last-Event-ID`. `-1` (sent by `useStream` when it rejoins), `-`, `0` and `0-0` mean the start.
    pub fn parse(cursor: &str) -> Result<Self, MalformedCursor> {
        match cursor.trim() {
            "-1" | "-" | "0" | "0-0" => Ok(Self::Start),
            text => text.parse().map(Self::After),
        }
    }
}

/// A hole in a replay. Field names are the wire's; the web UI checks all of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap {
    /// Always `stream_replay_gap`.
    pub code: String,
    /// The run.
    pub run_id: String,
    /// The cursor asked for; null when the beginning was asked for.
    pub requested_event_id: Option<String>,
    /// The oldest event kept.
    pub earliest_available_event_id: String,
    /// The newest event kept: rejoin after it once the durable state is loaded.
    pub latest_available_event_id: String,
    /// Always `reload_durable_state`.
    pub recovery: String,
}

impl Gap {
    /// The gap that `run_id` has between `requested` and what is kept.
    pub fn new(
        run_id: &crate::ids::RunId,
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

/// What a subscription begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResumeResult {
    /// Events from this sequence number on, then live.
    From(u64),
    /// A gap, and nothing else.
    Gap,
    /// The run has ended; what is left is replayed, then the end.
    Ended(TerminalKind),
    /// No such stream here: never opened, or cleaned up.
    Unknown,
}
