//! Cursors over the events of a thread.

use std::fmt;
use std::str::FromStr;

use crate::stream_bridge::{EventId, MalformedCursor, ResumeFrom};

/// Sequence number of a run's end: greater than that of any event.
pub(crate) const END_SEQ: u32 = u32::MAX;

/// Id of an event within its thread, written `{begun}-{position}`. `position` has 64 bits: the
/// attempt in the upper half, `seq` in the lower half. Ids increase, because the runs of a thread
/// start in the order of `begun`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ThreadEventId {
    /// Creation time of the run, in microseconds since 1970.
    pub begun: i64,
    /// Attempt that published the event; 0 if unknown.
    pub attempt: u32,
    /// Position of the event in the run.
    pub seq: u32,
}

impl ThreadEventId {
    pub(crate) const BEFORE_ALL: Self = Self {
        begun: i64::MIN,
        attempt: 0,
        seq: 0,
    };

    pub(crate) fn of(begun: i64, event: EventId) -> Self {
        Self {
            begun,
            attempt: event.attempt,
            seq: u32::try_from(event.seq).unwrap_or(END_SEQ).min(END_SEQ - 1),
        }
    }

    /// Returns the id of the end of the run created at `begun`.
    pub(crate) fn end_of_run(begun: i64) -> Self {
        Self {
            begun,
            attempt: u32::MAX,
            seq: END_SEQ,
        }
    }

    /// Returns the position in the run created at `begun` from which a subscriber that has seen
    /// this event resumes.
    pub(crate) fn resume(self, begun: i64) -> ResumeFrom {
        if self.begun != begun || self.seq == 0 {
            return ResumeFrom::Start;
        }
        // An unknown attempt may have been the first one: then the events of later attempts are
        // sent from their start.
        ResumeFrom::After(EventId {
            seq: self.seq.into(),
            attempt: self.attempt.max(1),
        })
    }

    /// Reports whether the run created at `begun` has items after this event.
    pub(crate) fn is_before_end_of(self, begun: i64) -> bool {
        begun > self.begun || (begun == self.begun && self.seq < END_SEQ)
    }
}

impl fmt::Display for ThreadEventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}-{}",
            self.begun,
            (u64::from(self.attempt) << 32) | u64::from(self.seq)
        )
    }
}

/// Start position of a thread subscriber.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ThreadCursor {
    /// Only events published after the subscription.
    #[default]
    Tail,
    /// Events after this one.
    After(ThreadEventId),
}

impl ThreadCursor {
    /// Cursor to all events that are retained.
    pub const START: Self = Self::After(ThreadEventId::BEFORE_ALL);
}

/// Parses a `Last-Event-ID`: `123-4`, `123`, or `-` for the start.
impl FromStr for ThreadCursor {
    type Err = MalformedCursor;

    fn from_str(text: &str) -> Result<Self, MalformedCursor> {
        if text == "-" {
            return Ok(Self::START);
        }
        let (begun, position) = text.split_once('-').unwrap_or((text, "0"));
        let digits =
            |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        let read = || {
            let position: u64 = position.parse().ok()?;
            let (attempt, seq) = (
                u32::try_from(position >> 32).ok()?,
                u32::try_from(position & u64::from(u32::MAX)).ok()?,
            );
            Some(ThreadEventId {
                begun: begun.parse().ok()?,
                attempt,
                seq,
            })
        };
        let id = Some(())
            .filter(|()| digits(begun) && digits(position))
            .and_then(|()| read());
        id.map(Self::After)
            .ok_or_else(|| MalformedCursor(text.chars().take(80).collect()))
    }
}
