//! Events of one run in order: the newest as they were published, the older ones packed.

use std::collections::VecDeque;

use super::entry::Entry;
use super::pack::Pack;
use crate::stream_bridge::EventId;

/// Number of newest events that are not packed, because viewers that follow the run read them.
const UNPACKED_EVENTS: usize = 8;
/// Number of further events after which those are packed.
const PACKED_AT_ONCE: usize = 24;

/// Events with consecutive sequence numbers.
#[derive(Debug, Default)]
pub(super) struct Entries {
    /// Events before those in `recent`.
    older: VecDeque<Older>,
    older_len: usize,
    recent: VecDeque<Entry>,
    bytes: usize,
}

/// Events that are no longer recent.
#[derive(Debug)]
enum Older {
    Packed(Box<Pack>),
    /// Event that shares too few bytes with its neighbours.
    Single(Entry),
}

impl Older {
    fn first(&self) -> EventId {
        match self {
            Self::Packed(pack) => pack.first(),
            Self::Single(entry) => entry.event.id,
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Packed(pack) => pack.len(),
            Self::Single(_) => 1,
        }
    }

    fn size(&self) -> usize {
        match self {
            Self::Packed(pack) => pack.size(),
            Self::Single(entry) => entry.size(),
        }
    }

    /// Returns the entries from an index on.
    fn entries(&self, from: usize) -> impl Iterator<Item = Entry> {
        (from..self.len()).filter_map(move |at| match self {
            Self::Packed(pack) => pack.entry(at),
            Self::Single(entry) => Some(entry.clone()),
        })
    }
}

impl Entries {
    /// Returns the number of events.
    pub(super) fn len(&self) -> usize {
        self.older_len + self.recent.len()
    }

    /// Returns the bytes that the events use.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Appends the event with the next sequence number.
    pub(super) fn push(&mut self, entry: Entry) {
        self.bytes += entry.size();
        self.recent.push_back(entry);
        if self.recent.len() >= UNPACKED_EVENTS + PACKED_AT_ONCE {
            self.pack(PACKED_AT_ONCE);
        }
    }

    /// Packs all events, as no more come.
    pub(super) fn finish(&mut self) {
        self.pack(self.recent.len());
        self.older.shrink_to_fit();
        self.recent.shrink_to_fit();
        if let Some(Older::Packed(pack)) = self.older.back_mut() {
            pack.shrink_to_fit();
        }
    }

    /// Evicts the oldest event.
    pub(super) fn evict_oldest(&mut self) {
        let Some(oldest) = self.older.front_mut() else {
            let evicted = self.recent.pop_front();
            self.bytes -= evicted.map_or(0, |entry| entry.size());
            return;
        };
        self.older_len -= 1;
        self.bytes -= oldest.size();
        match oldest {
            Older::Packed(pack) if pack.len() > 1 => {
                pack.evict_first();
                self.bytes += pack.size();
            }
            _ => drop(self.older.pop_front()),
        }
    }

    /// Evicts all events but the newest.
    pub(super) fn evict_all_but_newest(&mut self) {
        let newest = self.len().checked_sub(1);
        let newest = newest.and_then(|at| self.range(at).next());
        *self = Self::default();
        self.recent.reserve_exact(1);
        newest.into_iter().for_each(|entry| self.push(entry));
    }

    /// Returns the events from an index on, in order.
    pub(super) fn range(&self, from: usize) -> impl Iterator<Item = Entry> {
        let first = self.ids().next().map_or(0, |(first, _)| first.seq);
        let from_seq = first + from as u64;
        // The last part that begins at the event or before it.
        let after = self
            .older
            .partition_point(|older| older.first().seq <= from_seq);
        let at = after.saturating_sub(1);
        let skip = self
            .older
            .get(at)
            .map_or(0, |older| from_seq - older.first().seq);
        let skip = usize::try_from(skip).unwrap_or(usize::MAX);
        let older = self.older.range(at..).enumerate();
        let older =
            older.flat_map(move |(nth, part)| part.entries(if nth == 0 { skip } else { 0 }));
        let recent = from.saturating_sub(self.older_len).min(self.recent.len());
        older.chain(self.recent.range(recent..).cloned())
    }

    /// Returns the ids of the events in order: the first of a part, and the number of events in it.
    /// All events of a part have one attempt.
    pub(super) fn ids(&self) -> impl Iterator<Item = (EventId, usize)> {
        let older = self.older.iter().map(|older| (older.first(), older.len()));
        older.chain(self.recent.iter().map(|entry| (entry.event.id, 1)))
    }

    /// Returns the id of the first event.
    pub(super) fn first_id(&self) -> Option<EventId> {
        self.ids().next().map(|(id, _)| id)
    }

    /// Returns the id of the last event.
    pub(super) fn last_id(&self) -> Option<EventId> {
        let recent = self.recent.back().map(|entry| entry.event.id);
        recent.or_else(|| {
            let older = self.older.back()?;
            let EventId { seq, attempt } = older.first();
            let seq = seq + older.len() as u64 - 1;
            Some(EventId { seq, attempt })
        })
    }

    /// Returns the attempt that published the event at an index.
    pub(super) fn attempt_at(&self, index: usize) -> Option<u32> {
        if let Some(recent) = index.checked_sub(self.older_len) {
            return self.recent.get(recent).map(|entry| entry.event.id.attempt);
        }
        let seq = self.first_id()?.seq + index as u64;
        let after = self.older.partition_point(|older| older.first().seq <= seq);
        let older = self.older.get(after.checked_sub(1)?)?;
        Some(older.first().attempt)
    }

    /// Returns the number of events that attempts up to this one published.
    pub(super) fn up_to_attempt(&self, attempt: u32) -> usize {
        let up_to = |(id, _): &(EventId, usize)| id.attempt <= attempt;
        self.ids().take_while(up_to).map(|(_, len)| len).sum()
    }

    /// Packs the oldest of the recent events.
    fn pack(&mut self, count: usize) {
        let mut left = count.min(self.recent.len());
        self.older_len += left;
        while left > 0 {
            if let Some(packed) = self.extend_last_pack(left) {
                left -= packed;
                continue;
            }
            let part = match Pack::of_first(self.recent.range(..left)) {
                Some(pack) => Older::Packed(Box::new(pack)),
                None => match self.recent.front() {
                    Some(entry) => Older::Single(entry.clone()),
                    None => return,
                },
            };
            left -= part.len();
            self.bytes += part.size();
            self.forget_recent(part.len());
            self.older.push_back(part);
        }
    }

    /// Adds up to `limit` recent events to the newest pack. Returns their number; `None` if the
    /// first does not fit.
    fn extend_last_pack(&mut self, limit: usize) -> Option<usize> {
        let Some(Older::Packed(pack)) = self.older.back_mut() else {
            return None;
        };
        let before = pack.size();
        let fitting = self
            .recent
            .range(..limit)
            .take_while(|entry| pack.push(entry));
        let packed = fitting.count();
        self.bytes = self.bytes + pack.size() - before;
        self.forget_recent(packed);
        (packed > 0).then_some(packed)
    }

    /// Removes events from `recent` that are in `older`.
    fn forget_recent(&mut self, count: usize) {
        let packed = self.recent.drain(..count);
        self.bytes -= packed.map(|entry| entry.size()).sum::<usize>();
    }
}

#[cfg(test)]
#[path = "entries_tests.rs"]
mod tests;
