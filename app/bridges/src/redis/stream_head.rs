//! State of a run's stream without its events, and the position of a cursor in it.

use std::collections::{BTreeMap, HashMap};

use deerflow_core::ids::RunId;
use deerflow_runtime::stream_bridge::{
    EventId, Gap, LogOutline, LogRange, ResumeFrom, StreamStatus, TerminalKind,
};

/// Bounds, attempts and status of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StreamHead {
    /// Number of the newest attempt that claimed the stream; 0 before the first claim.
    pub(super) attempt: u32,
    /// Sequence number of the oldest stored event, or of the next event if none is stored.
    pub(super) first: u64,
    /// Sequence number of the newest event; 0 before the first one.
    pub(super) tail: u64,
    /// Sequence number of the newest event that the publisher has numbered. Events between `tail`
    /// and this one may be in flight.
    pub(super) published_seq: u64,
    /// Bytes of the stored events.
    pub(super) bytes: u64,
    /// Attempts by the sequence number of their first event.
    pub(super) starts: BTreeMap<u64, u32>,
    pub(super) status: StreamStatus,
}

impl Default for StreamHead {
    fn default() -> Self {
        Self {
            attempt: 0,
            first: 1,
            tail: 0,
            published_seq: 0,
            bytes: 0,
            starts: BTreeMap::new(),
            status: StreamStatus::Active,
        }
    }
}

impl StreamHead {
    /// Parses the hash that the append script writes; `None` if the stream does not exist.
    pub(super) fn read(fields: &HashMap<String, String>) -> Option<Self> {
        let number = |name: &str| fields.get(name).and_then(|text| text.parse::<u64>().ok());
        let attempt = number("attempt")?;
        let starts = fields.iter().filter_map(|(name, seq)| {
            Some((seq.parse().ok()?, name.strip_prefix("from:")?.parse().ok()?))
        });
        let status = match fields.get("ended").map(String::as_str) {
            Some("error") => StreamStatus::Ended(TerminalKind::Error),
            Some("cancel") => StreamStatus::Ended(TerminalKind::Cancel),
            Some(_) => StreamStatus::Ended(TerminalKind::End),
            None if fields.contains_key("waiting") => StreamStatus::AwaitingInput,
            None => StreamStatus::Active,
        };
        Some(Self {
            attempt: u32::try_from(attempt).unwrap_or(u32::MAX),
            first: number("first").unwrap_or(1),
            tail: number("tail").unwrap_or(0),
            published_seq: number("owed").unwrap_or(0),
            bytes: number("bytes").unwrap_or(0),
            starts: starts.collect(),
            status,
        })
    }

    /// Returns the end of the stream, if it has ended.
    pub(super) fn ended(&self) -> Option<TerminalKind> {
        match self.status {
            StreamStatus::Ended(kind) => Some(kind),
            StreamStatus::Active | StreamStatus::AwaitingInput => None,
        }
    }

    /// Counts an event that `attempt` appends, and returns its id.
    pub(super) fn append(&mut self, attempt: u32) -> EventId {
        self.tail += 1;
        if self.attempt_at(self.tail) != attempt {
            self.starts.insert(self.tail, attempt);
        }
        EventId {
            seq: self.tail,
            attempt,
        }
    }

    /// Returns the id of the newest event; `0-0` before the first one.
    pub(super) fn newest(&self) -> EventId {
        EventId {
            seq: self.tail,
            attempt: self.attempt_at(self.tail),
        }
    }

    /// Returns `true` if `event` is the first of its attempt.
    pub(super) fn begins_with(&self, event: EventId) -> bool {
        self.starts.get(&event.seq) == Some(&event.attempt)
    }

    /// Returns `true` if this stream continues `seen`, and was not continued from an earlier
    /// position by a later attempt.
    pub(super) fn continues(&self, seen: &StreamHead) -> bool {
        self.tail >= seen.tail && self.attempt_at(seen.tail) == seen.newest().attempt
    }

    /// Forgets the events after `tail`.
    pub(super) fn cut_after(&mut self, tail: u64) {
        self.tail = tail;
        self.starts.retain(|from, _| *from <= tail);
    }

    /// Returns the first sequence number after the cursor, if it is within the stored events.
    pub(super) fn locate(&self, from: ResumeFrom) -> Option<u64> {
        match from {
            ResumeFrom::Tail => Some(self.tail + 1),
            ResumeFrom::Start => (self.first == 1).then_some(1),
            ResumeFrom::After(id) => self.locate_after(id),
        }
    }

    fn locate_after(&self, id: EventId) -> Option<u64> {
        let next = id.seq.checked_add(1)?;
        if next < self.first {
            return None;
        }
        if next > self.tail + 1 {
            // The stream was lost with its publisher: a newer attempt continued from the remaining
            // events, and has not reached this one yet.
            let newer = self
                .starts
                .iter()
                .find(|(_, attempt)| **attempt > id.attempt)
                .map(|(from, _)| (*from).max(self.first));
            if let Some(newer) = newer.filter(|newer| *newer > self.first || self.first == 1) {
                return Some(newer);
            }
            let is_in_flight = id.seq <= self.published_seq
                && id.attempt <= self.attempt
                && self.ended().is_none();
            return is_in_flight.then_some(next);
        }
        let known = self.attempt_at(id.seq);
        if id.seq == 0 || id.attempt == known || (id.seq < self.first && known == 0) {
            // The events after the cursor are stored; the cursor's own event may be trimmed.
            return Some(next);
        }
        // The viewer saw an event of a lost attempt at this position: the newer attempt is replayed
        // from its first event.
        let newer = self
            .starts
            .iter()
            .find(|(_, attempt)| **attempt > id.attempt)
            .map(|(from, _)| (*from).max(self.first))?;
        (id.attempt < known && (newer > self.first || self.first == 1)).then_some(newer)
    }

    /// Returns the gap between `requested` and the stored events.
    pub(super) fn gap(&self, run_id: &RunId, requested: Option<EventId>) -> Gap {
        // A stream without events has no bounds; `0-0` means the start.
        let bound = |seq: u64| match self.first <= self.tail {
            true => EventId {
                seq,
                attempt: self.attempt_at(seq),
            },
            false => EventId { seq: 0, attempt: 0 },
        };
        Gap::new(run_id, requested, bound(self.first), bound(self.tail))
    }

    /// Returns the number of events per read, so that a read is about 64 KiB.
    pub(super) fn page(&self) -> usize {
        let events = (self.tail + 1).saturating_sub(self.first).max(1);
        let each = (self.bytes / events).max(1);
        usize::try_from(64 * 1024 / each).unwrap_or(1).clamp(1, 64)
    }

    /// Returns the stored events as consecutive ranges per attempt.
    fn ranges(&self) -> Vec<LogRange> {
        let starts: Vec<_> = self
            .starts
            .iter()
            .map(|(from, attempt)| ((*from).max(self.first), *attempt))
            .collect();
        let ends = starts
            .iter()
            .skip(1)
            .map(|(from, _)| from - 1)
            .chain([self.tail]);
        let ranges = starts
            .iter()
            .zip(ends)
            .map(|((first, attempt), last)| LogRange {
                first: *first,
                last,
                attempt: *attempt,
            });
        ranges.filter(|range| range.first <= range.last).collect()
    }

    /// Merges this head with the durable log's events before and after it. If the two do not join,
    /// the result has only the log's newest range.
    pub(super) fn with(self, logged: &LogOutline) -> Self {
        let before = logged.up_to(self.first.saturating_sub(1));
        let newest = logged.up_to(logged.tail());
        let joins = newest
            .first()
            .is_some_and(|range| range.first <= self.tail + 1);
        let mut all = LogOutline::default();
        match newest.last().filter(|newest| newest.last > self.tail) {
            Some(_) if !joins => newest.iter().for_each(|range| all.push(*range)),
            beyond => {
                before.iter().for_each(|range| {
                    all.push(LogRange {
                        last: range.last.min(self.first - 1),
                        ..*range
                    })
                });
                self.ranges().into_iter().for_each(|range| all.push(range));
                let beyond = newest
                    .iter()
                    .filter(|range| beyond.is_some() && range.last > self.tail);
                beyond.for_each(|range| {
                    all.push(LogRange {
                        first: range.first.max(self.tail + 1),
                        ..*range
                    })
                });
            }
        }
        let (Some(first), Some(last)) = (all.ranges.first().copied(), all.ranges.last().copied())
        else {
            return Self {
                status: self.status_with(logged, self.tail),
                ..self
            };
        };
        Self {
            attempt: self.attempt.max(last.attempt),
            first: first.first,
            tail: last.last,
            starts: all
                .ranges
                .iter()
                .map(|range| (range.first, range.attempt))
                .collect(),
            status: self.status_with(logged, last.last),
            ..self
        }
    }

    fn status_with(&self, logged: &LogOutline, tail: u64) -> StreamStatus {
        logged
            .end
            .filter(|(after, _)| *after == tail)
            .map_or(self.status, |(_, kind)| StreamStatus::Ended(kind))
    }

    fn attempt_at(&self, seq: u64) -> u32 {
        self.starts
            .range(..=seq)
            .next_back()
            .map_or(0, |(_, attempt)| *attempt)
    }
}

#[cfg(test)]
#[path = "stream_head_tests.rs"]
mod tests;
