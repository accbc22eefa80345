//! Ids of events, and the error of a malformed cursor.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Identity of an event within its run, written `{seq}-{attempt}`. Sequence numbers start at 1 and
/// have no holes.
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

/// Cursor that is neither an event id nor one of the values that mean the start.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("malformed event id {0:?}: expected digits-digits, or -1 for the start")]
pub struct MalformedCursor(pub String);

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
