//! Events, their identities, and what a subscriber can receive.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::data::EventData;
use super::resume::{Gap, MalformedCursor};
use crate::ids::RunId;

/// The stream of one attempt at a run. An attempt older than the newest known one is refused.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct StreamKey {
    /// Whose events.
    pub run_id: RunId,
    /// Which attempt publishes, from 1.
    pub attempt: u32,
}

/// Identity of an event within its run, written `{seq}-{attempt}`. Sequence numbers start at 1 and have no holes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct EventId {
    /// 1, 2, 3, ...
    pub seq: u64,
    /// The attempt that published it.
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

/// The event's name on the wire, such as `values` or `messages|tools:1`.
pub type EventName = Cow<'static, str>;

/// One event. The data is JSON, serialized once; every subscriber shares it.
#[derive(Debug, Clone, PartialEq)]
pub struct StreamEvent {
    /// Where it stands in the run.
    pub id: EventId,
    /// Its name.
    pub event: EventName,
    /// JSON without line breaks.
    pub data: EventData,
}

/// How a run's stream ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TerminalKind {
    /// The run ended by itself.
    End,
    /// The run failed; an `error` event went before.
    Error,
    /// The run was cancelled.
    Cancel,
}

/// What state a run's stream is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamStatus {
    /// Open; events may come.
    Active,
    /// Open, and waiting for a person: no event may come for a long time.
    AwaitingInput,
    /// Ended in this way; nothing more comes.
    Ended(TerminalKind),
}

/// What a subscriber receives.
#[derive(Debug, Clone, PartialEq)]
pub enum StreamItem {
    /// An event.
    Event(StreamEvent),
    /// Nothing happened for the asked time; shows that the stream lives.
    Heartbeat,
    /// Events between the cursor and what is kept are gone. The stream closes after it, with an end
    /// only if none of the run's events is left to come back for.
    Gap(Gap),
    /// The run's real end, exactly once and last.
    End(TerminalKind),
    /// The bridge shut down or cut a reader that was too slow. Not an end: the client should come back.
    Aborted,
}

/// The stream lives but has nothing new.
pub const HEARTBEAT_SENTINEL: StreamItem = StreamItem::Heartbeat;
/// The run ended.
pub const END_SENTINEL: StreamItem = StreamItem::End(TerminalKind::End);
/// The run was cancelled.
pub const CANCELLED_SENTINEL: StreamItem = StreamItem::End(TerminalKind::Cancel);
