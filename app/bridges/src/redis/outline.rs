//! What is known of a run's stream without its events, and where a cursor stands in it.

use std::collections::{BTreeMap, HashMap};

use harness::ids::RunId;
use harness::runtime::stream_bridge::{
    EventId, Gap, LogOutline, LogRange, ResumeFrom, StreamStatus, TerminalKind,
};

/// Bounds, owner and state of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Outline {
    /// The newest attempt that claimed the stream; 0 before any did.
    pub(super) attempt: u32,
    /// The oldest event kept, or the next one when none is.
    pub(super) first: u64,
    /// The newest event; 0 before there is one.
    pub(super) tail: u64,
    /// The newest event that the owner has published; some up to it may be on their way, or on their way again.
    pub(super) owed: u64,
    /// Bytes of the events kept.
    pub(super) bytes: u64,
    /// Which attempt published from which event on.
    pub(super) starts: BTreeMap<u64, u32>,
    pub(super) status: StreamStatus,
}

impl Default for Outline {
    fn default() -> Self {
        Self {
            attempt: 0,
            first: 1,
            tail: 0,
            owed: 0,
            bytes: 0,
            starts: BTreeMap::new(),
            status: StreamStatus::Active,
        }
    }
}

impl Outline {
    /// Reads the hash that the append script writes; `None` when there is no such stream.
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
            owed: number("owed").unwrap_or(0),
            bytes: number("bytes").unwrap_or(0),
            starts: starts.collect(),
            status,
        })
    }

    /// How the stream ended, if it did.
    pub(super) fn ended(&self) -> Option<TerminalKind> {
        match self.status {
            StreamStatus::Ended(kind) => Some(kind),
            StreamStatus::Active | StreamStatus::AwaitingInput => None,
        }
    }

    /// Takes note of the event that `attempt` appends.
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

    /// The newest event; `0-0` before there is one.
    pub(super) fn newest(&self) -> EventId {
        EventId {
            seq: self.tail,
            attempt: self.attempt_at(self.tail),
        }
    }

    /// Whether `event` is the first of its attempt.
    pub(super) fn begins_with(&self, event: EventId) -> bool {
        self.starts.get(&event.seq) == Some(&event.attempt)
    }

    /// Whether this goes on where `seen` stood, and not from an earlier place with a later attempt.
    pub(super) fn continues(&self, seen: &Outline) -> bool {
        self.tail >= seen.tail && self.attempt_at(seen.tail) == seen.newest().attempt
    }

    /// Forgets what comes after `tail`.
    pub(super) fn cut_after(&mut self, tail: u64) {
        self.tail = tail;
        self.starts.retain(|from, _| *from <= tail);
    }

    /// The first sequence number that `from` means, if it is within what is kept.
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
            // The stream was lost with its owner: a newer attempt went on from what was left, and has not come as far yet.
            let newer = self
                .starts
                .iter()
                .find(|(_, attempt)| **attempt > id.attempt)
                .map(|(from, _)| (*from).max(self.first));
            if let Some(newer) = newer.filter(|newer| *newer > self.first || self.first == 1) {
                return Some(newer);
            }
            let comes = id.seq <= self.owed && id.attempt <= self.attempt && self.ended().is_none();
            return comes.then_some(next);
        }
        let known = self.attempt_at(id.seq);
        if id.seq == 0 || id.attempt == known || (id.seq < self.first && known == 0) {
            // What follows the cursor is there; the event of the cursor itself may be gone.
            return Some(next);
        }
        // The viewer saw a lost attempt's event in this place: the newer attempt is replayed from its beginning.
        let newer = self
            .starts
            .iter()
            .find(|(_, attempt)| **attempt > id.attempt)
            .map(|(from, _)| (*from).max(self.first))?;
        (id.attempt < known && (newer > self.first || self.first == 1)).then_some(newer)
    }

    /// The gap between `requested` and what is kept.
    pub(super) fn gap(&self, run_id: &RunId, requested: Option<EventId>) -> Gap {
        // A run without an event has no bounds: 0-0 reads as "the start".
        let bound = |seq: u64| match self.first <= self.tail {
            true => EventId {
                seq,
                attempt: self.attempt_at(seq),
            },
            false => EventId { seq: 0, attempt: 0 },
        };
        Gap::new(run_id, requested, bound(self.first), bound(self.tail))
    }

    /// How many events are read at once so that they come to about 64 KiB.
    pub(super) fn page(&self) -> usize {
        let events = (self.tail + 1).saturating_sub(self.first).max(1);
        let each = (self.bytes / events).max(1);
        usize::try_from(64 * 1024 / each).unwrap_or(1).clamp(1, 64)
    }

    /// The same events as consecutive ranges.
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

    /// This and what the durable log has before and after it; all that the log has newest where that does not join.
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
mod tests {
    use super::*;

    fn outline() -> Outline {
        let pairs = [
            ("attempt", "3"),
            ("first", "2"),
            ("tail", "9"),
            ("from:1", "1"),
            ("from:3", "6"),
            ("ended", "cancel"),
        ];
        let fields = pairs
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        Outline::read(&fields).expect("there is an attempt")
    }

    #[test]
    fn what_the_script_wrote_is_read_back() {
        let outline = outline();
        assert_eq!((outline.attempt, outline.first, outline.tail), (3, 2, 9));
        assert_eq!(outline.ended(), Some(TerminalKind::Cancel));
        assert_eq!(
            [1, 5, 6, 9].map(|seq| outline.attempt_at(seq)),
            [1, 1, 3, 3]
        );
        assert_eq!(
            Outline::read(&HashMap::from([("forget".to_owned(), "1".to_owned())])),
            None
        );
    }

    #[test]
    fn a_cursor_stands_where_its_attempt_says() {
        let after = |seq, attempt| outline().locate(ResumeFrom::After(EventId { seq, attempt }));
        assert_eq!(after(1, 1), Some(2));
        assert_eq!(after(4, 1), Some(5));
        assert_eq!(after(7, 1), Some(6), "the newer attempt from its beginning");
        assert_eq!(after(7, 2), Some(6));
        assert_eq!(
            (
                after(4, 3),
                after(7, 4),
                after(10, 3),
                after(0, 0),
                after(u64::MAX, 1)
            ),
            (None, None, None, None, None)
        );
        assert_eq!(
            (
                outline().locate(ResumeFrom::Start),
                outline().locate(ResumeFrom::Tail)
            ),
            (None, Some(10))
        );
        let later = Outline {
            first: 8,
            ..outline()
        };
        assert_eq!(
            later.locate(ResumeFrom::After(EventId { seq: 7, attempt: 3 })),
            Some(8),
            "its own event is gone"
        );
        assert_eq!(
            later.locate(ResumeFrom::After(EventId { seq: 7, attempt: 1 })),
            None,
            "the newer attempt's beginning is gone"
        );
    }

    #[test]
    fn a_cursor_at_what_the_owner_still_sends_waits_for_it() {
        let rebuilt = Outline {
            attempt: 1,
            tail: 3,
            owed: 9,
            starts: BTreeMap::from([(1, 1)]),
            ..Outline::default()
        };
        let after = |seq, attempt| rebuilt.locate(ResumeFrom::After(EventId { seq, attempt }));
        assert_eq!(
            (after(9, 1), after(10, 1), after(9, 2)),
            (Some(10), None, None)
        );
        let ended = Outline {
            status: StreamStatus::Ended(TerminalKind::Cancel),
            ..rebuilt.clone()
        };
        assert_eq!(
            ended.locate(ResumeFrom::After(EventId { seq: 9, attempt: 1 })),
            None
        );
    }

    #[test]
    fn the_durable_log_adds_what_joins_and_stands_alone_where_it_is_newer() {
        let logged = |ranges: &[(u64, u64, u32)], end| {
            let mut logged = LogOutline {
                ranges: Vec::new(),
                end,
            };
            ranges.iter().for_each(|(first, last, attempt)| {
                logged.push(LogRange {
                    first: *first,
                    last: *last,
                    attempt: *attempt,
                })
            });
            logged
        };
        let bounds = |outline: Outline| {
            (
                outline.first,
                outline.tail,
                outline.starts.into_iter().collect::<Vec<_>>(),
            )
        };
        let stream = Outline {
            attempt: 1,
            first: 5,
            tail: 9,
            starts: BTreeMap::from([(1, 1)]),
            ..Outline::default()
        };
        assert_eq!(
            bounds(stream.clone().with(&logged(&[(1, 6, 1)], None))),
            (1, 9, vec![(1, 1)])
        );
        assert_eq!(
            bounds(stream.clone().with(&logged(&[(1, 3, 1)], None))),
            (5, 9, vec![(5, 1)]),
            "4 is missing"
        );
        assert_eq!(
            bounds(
                stream
                    .clone()
                    .with(&logged(&[(1, 4, 1), (8, 11, 1), (12, 12, 2)], None))
            ),
            (1, 12, vec![(1, 1), (12, 2)])
        );
        assert_eq!(
            bounds(
                stream
                    .clone()
                    .with(&logged(&[(1, 4, 1), (11, 12, 1)], None))
            ),
            (11, 12, vec![(11, 1)]),
            "10 is missing"
        );
        assert_eq!(
            bounds(Outline::default().with(&logged(&[(1, 4, 1)], None))),
            (1, 4, vec![(1, 1)])
        );
        let ended = |end| {
            stream
                .clone()
                .with(&logged(&[(8, 9, 1)], Some(end)))
                .ended()
        };
        assert_eq!(
            (
                ended((9, TerminalKind::Error)),
                ended((8, TerminalKind::Error))
            ),
            (Some(TerminalKind::Error), None)
        );
        assert_eq!(
            bounds(Outline::default().with(&LogOutline::default())),
            (1, 0, vec![])
        );
    }

    #[test]
    fn pages_are_small_where_events_are_large() {
        assert_eq!(Outline::default().page(), 64);
        assert_eq!(
            Outline {
                tail: 10,
                bytes: 10 * 32 * 1024,
                ..Outline::default()
            }
            .page(),
            2
        );
        assert_eq!(
            Outline {
                tail: 1,
                bytes: 1 << 30,
                ..Outline::default()
            }
            .page(),
            1
        );
    }
}
