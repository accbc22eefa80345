//! Durable log of a stream: events that the bridge cannot retain.

use std::fmt;

use async_trait::async_trait;

use super::event::StreamEvent;
use super::resume::ResumeFrom;
use super::status::TerminalKind;
use crate::definition::StoreError;
use deerflow_core::ids::RunId;

/// Consecutive events of one run, and the end of the stream if it follows them.
#[derive(Debug, Clone, PartialEq)]
pub struct LogBatch {
    /// Run that the events belong to.
    pub run_id: RunId,
    /// Attempt that appends; some of the events may be of earlier attempts.
    pub attempt: u32,
    /// Sequence number before the first event of the batch.
    pub before: u64,
    /// Events in order, without holes.
    pub events: Vec<StreamEvent>,
    /// End of the stream, if it directly follows these events.
    pub end: Option<TerminalKind>,
}

impl LogBatch {
    /// Returns the sequence number of the last event, or `before` if the batch has none.
    pub fn tail(&self) -> u64 {
        self.before + self.events.len() as u64
    }
}

/// Events of a log from a position on.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LogPage {
    /// Consecutive events from the requested one on; empty if the log does not have it.
    pub events: Vec<StreamEvent>,
    /// End of the stream, if it directly follows these events or precedes the requested one.
    pub end: Option<TerminalKind>,
}

/// Consecutive events of one attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogRange {
    /// Sequence number of the first event.
    pub first: u64,
    /// Sequence number of the last event.
    pub last: u64,
    /// Attempt that published the events.
    pub attempt: u32,
}

/// Summary of the events that a log has of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogOutline {
    /// Ranges in order; a range ends where the attempt changes or events are missing.
    pub ranges: Vec<LogRange>,
    /// Last sequence number of the stream and the kind of its end.
    pub end: Option<(u64, TerminalKind)>,
}

impl LogOutline {
    /// Appends the next range of the log.
    pub fn push(&mut self, range: LogRange) {
        match self.ranges.last_mut() {
            Some(last) if last.attempt == range.attempt && last.last + 1 >= range.first => {
                last.last = last.last.max(range.last)
            }
            _ => self.ranges.push(range),
        }
    }

    /// Returns the contiguous ranges that end with the range of event `last`; empty if the log does
    /// not have this event.
    pub fn up_to(&self, last: u64) -> &[LogRange] {
        let Some(end) = self
            .ranges
            .iter()
            .position(|range| (range.first..=range.last).contains(&last))
        else {
            return &[];
        };
        let holes = self.ranges[..=end]
            .windows(2)
            .rposition(|pair| pair[0].last + 1 < pair[1].first);
        &self.ranges[holes.map_or(0, |hole| hole + 1)..=end]
    }

    /// Returns the sequence number of the newest event; 0 if there is none.
    pub fn tail(&self) -> u64 {
        self.ranges.last().map_or(0, |range| range.last)
    }

    /// Reports whether the log has neither events nor an end of the run.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty() && self.end.is_none()
    }
}

/// Returns the first sequence number that `from` refers to, given contiguous ranges; `None` if the
/// event is not available. Events of a superseded attempt are invalid: a viewer that saw some of
/// them resumes at the beginning of the newer attempt.
pub fn locate_in(ranges: &[LogRange], from: ResumeFrom) -> Option<u64> {
    let (first, tail) = (ranges.first()?.first, ranges.last()?.last);
    let id = match from {
        ResumeFrom::Tail => return Some(tail + 1),
        ResumeFrom::Start => return (first == 1).then_some(1),
        ResumeFrom::After(id) => id,
    };
    let next = id.seq.checked_add(1).filter(|next| *next >= first)?;
    let newer = || {
        ranges
            .iter()
            .find(|range| range.attempt > id.attempt)
            .filter(|range| range.first > first || first == 1)
    };
    match ranges
        .iter()
        .find(|range| (range.first..=range.last).contains(&id.seq))
    {
        Some(known) if known.attempt < id.attempt => None,
        Some(known) if known.attempt == id.attempt => Some(next),
        None if id.seq <= tail => Some(next),
        _ => newer().map(|range| range.first),
    }
}

/// Reason why a batch was not appended.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StreamLogError {
    /// A newer attempt owns the run.
    #[error("attempt {attempt} of run {run_id} may not append, attempt {current} owns the run")]
    Fenced {
        /// Id of the run.
        run_id: RunId,
        /// Attempt that tried to append.
        attempt: u32,
        /// Attempt that owns the run.
        current: u32,
    },
    /// The run was deleted.
    #[error("run {0} no longer exists")]
    Gone(RunId),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Durable storage for events that a bridge cannot retain: those beyond its limits, and those that
/// its server rejects. It may store any ranges of a run. Guarantees of every implementation:
///
/// - Appended events are durable when the call returns, and visible to all readers.
/// - An event that the log already has is not written again: a batch may be sent twice, and batches
///   may overlap.
/// - An append of an attempt older than the run's is rejected in the same transaction. Deleting a
///   run deletes its log.
/// - A stream that restarts with a later attempt replaces the events of earlier attempts at the
///   same and later positions.
///
/// ```
/// use deerflow_core::ids::RunId;
/// use deerflow_runtime::in_memory::InMemoryStores;
/// use deerflow_runtime::stream_bridge::{EventId, LogBatch, StreamEvent, StreamLog};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let log = InMemoryStores::new();
/// let run_id = RunId::parse("r1")?;
/// let event = StreamEvent {
///     id: EventId { seq: 1, attempt: 1 },
///     event: "values".into(),
///     data: bytes::Bytes::from_static(b"{}").into(),
/// };
/// assert!(log.read(&run_id, 1, 10).await?.events.is_empty());
/// let batch = LogBatch { run_id, attempt: 1, before: 0, events: vec![event], end: None };
/// // The run does not exist, so the log rejects its events.
/// assert!(log.append(batch).await.is_err());
/// # Ok(())
/// # }
/// ```
#[async_trait]
pub trait StreamLog: Send + Sync + fmt::Debug {
    /// Appends a batch atomically.
    async fn append(&self, batch: LogBatch) -> Result<(), StreamLogError>;

    /// Returns about `most` events from `next` on, and stops before the first missing one.
    async fn read(&self, run_id: &RunId, next: u64, most: usize) -> Result<LogPage, StoreError>;

    /// Returns the summary of a run.
    async fn outline(&self, run_id: &RunId) -> Result<LogOutline, StoreError>;

    /// Deletes the log of a run. Idempotent.
    async fn forget(&self, run_id: &RunId) -> Result<(), StoreError>;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream_bridge::event_id::EventId;

    fn outline() -> LogOutline {
        let mut outline = LogOutline::default();
        for (first, last, attempt) in [(1, 4, 1), (5, 6, 1), (9, 10, 1), (11, 12, 2)] {
            outline.push(LogRange {
                first,
                last,
                attempt,
            });
        }
        outline
    }

    #[test]
    fn ranges_end_at_holes_and_where_the_attempt_changes() {
        let ranges: Vec<_> = outline()
            .ranges
            .iter()
            .map(|range| (range.first, range.last))
            .collect();
        assert_eq!(ranges, [(1, 6), (9, 10), (11, 12)]);
    }

    #[test]
    fn cursor_is_located_by_its_attempt() {
        let ranges = [(2, 6, 1), (7, 9, 3)].map(|(first, last, attempt)| LogRange {
            first,
            last,
            attempt,
        });
        let after = |seq, attempt| locate_in(&ranges, ResumeFrom::After(EventId { seq, attempt }));
        assert_eq!(
            (after(1, 1), after(4, 1), after(9, 3)),
            (Some(2), Some(5), Some(10))
        );
        assert_eq!(
            (after(8, 1), after(57, 2)),
            (Some(7), Some(7)),
            "the newer attempt from its beginning"
        );
        assert_eq!(
            (after(0, 0), after(4, 3), after(10, 3), after(u64::MAX, 1)),
            (None, None, None, None)
        );
        assert_eq!(
            (
                locate_in(&ranges, ResumeFrom::Start),
                locate_in(&ranges, ResumeFrom::Tail)
            ),
            (None, Some(10))
        );
        assert_eq!(
            (
                locate_in(&[], ResumeFrom::Start),
                locate_in(&outline().ranges[..1], ResumeFrom::Start)
            ),
            (None, Some(1))
        );
    }

    #[test]
    fn range_before_event_starts_after_last_hole() {
        let firsts = |last| {
            outline()
                .up_to(last)
                .iter()
                .map(|range| range.first)
                .collect::<Vec<_>>()
        };
        assert_eq!(
            (firsts(12), firsts(9), firsts(5), firsts(8), firsts(13)),
            (vec![9, 11], vec![9], vec![1], vec![], vec![])
        );
    }
}
