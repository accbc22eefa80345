//! Events, their ids, and the items that a subscriber receives.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::data::EventData;
use super::resume::{Gap, MalformedCursor};
use deerflow_core::ids::RunId;

/// Stream of one attempt of a run. Attempts older than the newest known one are rejected.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct StreamKey {
    /// Run that the events belong to.
    pub run_id: RunId,
    /// Attempt that publishes, from 1.
    pub attempt: u32,
}

/// Identity of an event within its run, written `{seq}-{attempt}`. Sequence numbers start at 1 and have no holes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct EventId {
    /// Sequence number: 1, 2, 3, ...
    pub seq: u64,
    /// Attempt that published the event.
    pub attempt: u32,
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.seq, self.attempt)
    }
}

impl FromStr for EventId {
    type Err = MalformedCursor;

    fn from_str(text: &str) -> Result<Self, MalformedCursor> {
        let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        text.split_once('-')
            .filter(|(seq, attempt)| digits(seq) && digits(attempt))
            .and_then(|(seq, attempt)| {
                Some(Self {
                    seq: seq.parse().ok()?,
                    attempt: attempt.parse().ok()?,
                })
            })
            .ok_or_else(|| MalformedCursor(text.chars().take(80).collect()))
    }
}

/// Name of an event on the wire, such as `values` or `messages|tools:1`.
pub type EventName = Cow<'static, str>;

/// One event. The data is JSON, serialized once and shared by all subscribers.
#[derive(Debug, Clone, PartialEq)]
pub struct StreamEvent {
    /// Position of the event in the run.
    pub id: EventId,
    /// Name of the event.
    pub event: EventName,
    /// JSON without line breaks.
    pub data: EventData,
}

/// Kind of end of a run's stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TerminalKind {
    /// The run ended normally.
    End,
    /// The run failed; an `error` event precedes the end.
    Error,
    /// The run was cancelled.
    Cancel,
}

/// State of a run's stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamStatus {
    /// Open; more events may follow.
    Active,
    /// Open and waiting for user input: no event may follow for a long time.
    AwaitingInput,
    /// Ended with this kind; no event follows.
    Ended(TerminalKind),
}

/// Item that a subscriber receives.
#[derive(Debug, Clone, PartialEq)]
pub enum StreamItem {
    /// An event.
    Event(StreamEvent),
    /// No event for the requested time; shows that the stream is alive.
    Heartbeat,
    /// The events between the cursor and the oldest retained one are no longer available. The
    /// stream closes after this item; an end follows only if the run has no event to resume from.
    Gap(Gap),
    /// The end of the run: exactly one, and the last item.
    End(TerminalKind),
    /// The bridge shut down, or disconnected a reader that was too slow. Not an end: the client
    /// should reconnect.
    Aborted,
}

/// The stream is alive without new events.
pub const HEARTBEAT_SENTINEL: StreamItem = StreamItem::Heartbeat;
/// The run ended.
pub const END_SENTINEL: StreamItem = StreamItem::End(TerminalKind::End);
/// The run was cancelled.
pub const CANCELLED_SENTINEL: StreamItem = StreamItem::End(TerminalKind::Cancel);
