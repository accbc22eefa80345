//! Requests to the server, its replies, and their encoding.

use bytes::Bytes;
use deerflow_core::ids::RunId;
use deerflow_runtime::stream_bridge::{EventId, LogOutline, StreamEvent, TerminalKind};
use redis::{FromRedisValue, Value};

use super::connection::Outage;
use super::stream_head::StreamHead;

/// One call of the append script.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Append {
    /// Attempt that appends; `None` acts for the current publisher.
    pub(super) attempt: Option<u32>,
    /// Sequence number of the event before the first of `events`; `None` for a request without an
    /// append.
    pub(super) before: Option<u64>,
    /// Rebuilds the stream: it starts with these events.
    pub(super) rebuild: bool,
    pub(super) events: Vec<StreamEvent>,
    pub(super) awaiting_input: bool,
    pub(super) end: Option<TerminalKind>,
    /// Sequence number of the newest event that the publisher has numbered, also if it is not among
    /// `events`.
    pub(super) published_seq: Option<u64>,
    /// The server may trim events up to this one.
    pub(super) spilled: u64,
}

impl Append {
    /// Builds a claim: fences off lower attempts and reads the stream's position.
    pub(super) fn claim(attempt: u32) -> Self {
        Self {
            attempt: Some(attempt),
            before: None,
            rebuild: false,
            events: Vec::new(),
            awaiting_input: false,
            end: None,
            published_seq: None,
            spilled: 0,
        }
    }

    /// Builds a cancel: ends the stream as cancelled, for any publisher.
    pub(super) fn cancel() -> Self {
        Self {
            attempt: None,
            before: None,
            rebuild: false,
            events: Vec::new(),
            awaiting_input: false,
            end: Some(TerminalKind::Cancel),
            published_seq: None,
            spilled: 0,
        }
    }
}

/// Outcome of the append script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AppendOutcome {
    /// All events are in the stream, now or from an earlier call.
    Stored,
    /// A higher attempt publishes the stream.
    Fenced,
    /// The stream has ended.
    Ended,
    /// Events before these are missing in the stream.
    Behind,
    /// The stream has other events at these positions.
    Conflict,
}

/// Outcome of an append, and the stream's state after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reply {
    pub(super) outcome: AppendOutcome,
    pub(super) head: StreamHead,
    /// Outline of the durable log, if it was read.
    pub(super) logged: LogOutline,
}

/// Result of reading a stream.
#[derive(Debug, Default)]
pub(super) struct StreamSnapshot {
    /// `None` if the stream does not exist.
    pub(super) head: Option<StreamHead>,
    /// `true` if the events that `head` describes exist too.
    pub(super) complete: bool,
    /// The requested events.
    pub(super) events: Vec<StreamEvent>,
}

/// A run to read, with the first sequence number and the number of events to return.
pub(super) type ReadRequest = (RunId, Option<(u64, usize)>);

/// Signal that a run has new events or has ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct StreamSignal {
    pub(super) attempt: u32,
    pub(super) ended: bool,
    pub(super) run_id: RunId,
}

impl StreamSignal {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut words = text.split(' ');
        let (attempt, kind, run_id) = (words.next()?, words.next()?, words.next()?);
        Some(Self {
            attempt: attempt.parse().ok()?,
            ended: kind != "-",
            run_id: RunId::parse(run_id).ok()?,
        })
    }
}

pub(super) fn parsed<T: FromRedisValue>(value: Value) -> Result<T, Outage> {
    T::from_redis_value(value).map_err(|error| Outage::new(error.to_string()))
}

/// Returns the events of an XRANGE reply, up to the first malformed entry.
pub(super) fn events_of(value: Value) -> Vec<StreamEvent> {
    let Value::Array(entries) = value else {
        return Vec::new();
    };
    entries.into_iter().map_while(event_of).collect()
}

fn event_of(entry: Value) -> Option<StreamEvent> {
    let (id, [_, name, _, data]) = <(String, [Value; 4])>::from_redis_value(entry).ok()?;
    let (Value::BulkString(name), Value::BulkString(data)) = (name, data) else {
        return None;
    };
    let id: EventId = id.parse().ok()?;
    Some(StreamEvent {
        id,
        event: String::from_utf8(name).ok()?.into(),
        data: Bytes::from(data).into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signal_names_its_run_and_other_texts_are_keepalives() {
        let signal = StreamSignal::parse("2 - run-1").expect("well formed");
        assert_eq!(
            signal,
            StreamSignal {
                attempt: 2,
                ended: false,
                run_id: RunId::parse("run-1").expect("valid")
            }
        );
        assert!(
            StreamSignal::parse("2 cancel run-1")
                .expect("well formed")
                .ended
        );
        assert_eq!(
            ["", "x", "1 -", "1 - a/b"].map(StreamSignal::parse),
            [const { None }; 4]
        );
    }
}
