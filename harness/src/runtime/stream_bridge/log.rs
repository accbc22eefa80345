//! The durable log of a stream: what its bridge cannot keep for now, or no longer.

use std::fmt;

use async_trait::async_trait;

use super::event::{StreamEvent, TerminalKind};
use super::resume::ResumeFrom;
use crate::ids::RunId;
use crate::runtime::runs::store::StoreError;

/// Consecutive events of one run, and its end if that follows them.
#[derive(Debug, Clone, PartialEq)]
pub struct LogBatch {
    /// Whose events.
    pub run_id: RunId,
    /// The attempt that appends; some of the events may be of earlier ones.
    pub attempt: u32,
    /// The event before the first of these.
    pub before: u64,
    /// In order, without holes.
    pub events: Vec<StreamEvent>,
    /// How the stream ended, if it ended with the last of these.
    pub end: Option<TerminalKind>,
}

impl LogBatch {
    /// The last event of these, or the one before if there are none.
    pub fn tail(&self) -> u64 {
        self.before + self.events.len() as u64
    }
}

/// What a log has from a place on.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LogPage {
    /// Consecutive, beginning with the event that was asked for; empty where the log does not have it.
    pub events: Vec<StreamEvent>,
    /// How the stream ended, if it ended with the last of these, or before the event that was asked for.
    pub end: Option<TerminalKind>,
}

/// Consecutive events of one attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogRange {
    /// The first of them.
    pub first: u64,
    /// The last of them.
    pub last: u64,
    /// Who published them.
    pub attempt: u32,
}

/// What a log has of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogOutline {
    /// In order; one ends where the attempt changes, or where events are missing.
    pub ranges: Vec<LogRange>,
    /// How the stream ended, and after which event.
    pub end: Option<(u64, TerminalKind)>,
}

impl LogOutline {
    /// Takes in what comes next in the log.
    pub fn push(&mut self, range: LogRange) {
        match self.ranges.last_mut() {
            Some(last) if last.attempt == range.attempt && last.last + 1 >= range.first => {
                last.last = last.last.max(range.last)
            }
            _ => self.ranges.push(range),
        }
    }

    /// The ranges that follow each other without a hole up to event `last`, which is in the newest of them.
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

    /// The newest event; 0 when there is none.
    pub fn tail(&self) -> u64 {
        self.ranges.last().map_or(0, |range| range.last)
    }

    /// Whether nothing is known of the run.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty() && self.end.is_none()
    }
}

/// The first sequence number that `from` means in events without holes. What a viewer saw of an attempt that lost its place is void:
/// it begins again with the newer one.
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

/// Why a batch was not appended.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StreamLogError {
    /// A newer attempt owns the run.
    #[error("attempt {attempt} of run {run_id} may not append, attempt {current} owns the run")]
    Fenced {
        /// The run.
        run_id: RunId,
        /// Who tried.
        attempt: u32,
        /// Who may.
        current: u32,
    },
    /// The run was deleted.
    #[error("run {0} no longer exists")]
    Gone(RunId),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Where a bridge puts events that it cannot keep: those beyond its limits, and those that its server does not take. It may hold any
/// parts of a run. What an implementation promises:
///
/// - What was appended is durable when the call returns, and reads anywhere see it.
/// - An event that the log has is not written again, so a batch may be sent twice, and batches may overlap.
/// - An attempt older than the run's is refused in the transaction that would write; a run that is deleted takes its log along.
/// - A stream that begins anew with a later attempt replaces what earlier ones had in the same places, and after them.
#[async_trait]
pub trait StreamLog: Send + Sync + fmt::Debug {
    /// Appends a batch: all of it or nothing.
    async fn append(&self, batch: LogBatch) -> Result<(), StreamLogError>;

    /// About `most` events from `next` on, or as many as there are before the first that is missing.
    async fn read(&self, run_id: &RunId, next: u64, most: usize) -> Result<LogPage, StoreError>;

    /// What there is of a run.
    async fn outline(&self, run_id: &RunId) -> Result<LogOutline, StoreError>;

    /// Forgets a run. Idempotent.
    async fn forget(&self, run_id: &RunId) -> Result<(), StoreError>;
}

#[cfg(test)]
mod tests {
    use super::super::event::EventId;
    use super::*;

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
    fn a_cursor_stands_where_its_attempt_says() {
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
    fn what_leads_up_to_an_event_begins_after_the_last_hole() {
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
