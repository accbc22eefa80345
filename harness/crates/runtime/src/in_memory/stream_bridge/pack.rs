//! Consecutive events whose JSON begins and ends the same, such as the tokens of a message, in a
//! fraction of their memory: the shared bytes are stored once.

use bytes::Bytes;
use tokio::time::Instant;

use super::entry::Entry;
use crate::stream_bridge::{EventData, EventId, EventName, StreamEvent};

/// Maximum length of an event that is packed although it shares little, in bytes: a pack also saves
/// its id, name and time.
const SHORT_BYTES: usize = 1024;
/// Maximum number of events in a pack: an evicted event is freed with its pack.
const MAX_EVENTS: usize = 256;

/// Events with consecutive sequence numbers, one attempt and one name.
#[derive(Debug)]
pub(super) struct Pack {
    /// Id of the first event that is not evicted.
    first: EventId,
    event: EventName,
    prefix: Bytes,
    suffix: Bytes,
    /// Last piece of the data of all events.
    tail: Bytes,
    /// Time at which the first event was published.
    at: Instant,
    /// Bytes of the events between prefix and suffix, one event after the other.
    middles: Vec<u8>,
    marks: Vec<Mark>,
    /// Number of evicted events, whose middles and marks are still stored.
    evicted: usize,
}

/// Position of an event in a [`Pack`].
#[derive(Debug, Clone, Copy)]
struct Mark {
    /// End of the event in the middles.
    end: u32,
    /// Time of the publish, in milliseconds after that of the first event.
    after_millis: u32,
}

impl Pack {
    /// Packs the first of these entries together with those after it that share most of its bytes;
    /// `None` if the next one does not.
    pub(super) fn of_first<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> Option<Self> {
        let mut entries = entries.into_iter();
        let first = entries.next().filter(|first| is_packable(first))?;
        let head = first.event.data.head();
        let mut shared = Shared::whole(head);
        let mut similar = vec![first];
        for entry in entries.take_while(|entry| is_alike(first, entry)) {
            let other = entry.event.data.head();
            let next = shared.with(head, other);
            // The first event loses its content to the second. Another event that shares much less
            // than those before it begins a pack of its own.
            let is_similar = similar.len() == 1 || next.bytes() >= shared.bytes() / 2;
            if !is_similar
                || !is_worth_a_copy(head, next.bytes())
                || !is_worth_a_copy(other, next.bytes())
            {
                break;
            }
            shared = next;
            similar.push(entry);
        }
        if similar.len() == 1 {
            return None;
        }
        let Shared { prefix, suffix, .. } = shared;
        let suffix = suffix.min(shared.shortest - prefix);
        let mut pack = Self {
            first: first.event.id,
            event: first.event.event.clone(),
            prefix: Bytes::copy_from_slice(&head[..prefix]),
            suffix: Bytes::copy_from_slice(&head[head.len() - suffix..]),
            tail: first.event.data.tail().clone(),
            at: first.at,
            middles: Vec::new(),
            marks: Vec::with_capacity(similar.len()),
            evicted: 0,
        };
        let packed = similar.into_iter().all(|entry| pack.push(entry));
        packed.then_some(pack)
    }

    /// Appends the entry that follows the last one. Returns `false` if it does not fit.
    pub(super) fn push(&mut self, entry: &Entry) -> bool {
        let head = entry.event.data.head();
        let (prefix, suffix) = (self.prefix.len(), self.suffix.len());
        let fits = self.marks.len() < MAX_EVENTS
            && is_packable(entry)
            && entry.event.id.attempt == self.first.attempt
            && entry.event.event == self.event
            && entry.event.data.tail() == &self.tail
            && head.len() >= prefix + suffix
            && head.starts_with(&self.prefix)
            && head.ends_with(&self.suffix)
            && is_worth_a_copy(head, prefix + suffix);
        if !fits {
            return false;
        }
        let middle = &head[prefix..head.len() - suffix];
        let after = entry.at.saturating_duration_since(self.at).as_millis();
        let (Ok(end), Ok(after_millis)) = (
            u32::try_from(self.middles.len() + middle.len()),
            u32::try_from(after),
        ) else {
            return false;
        };
        self.middles.extend_from_slice(middle);
        self.marks.push(Mark { end, after_millis });
        true
    }

    /// Returns the id of the first event that is not evicted.
    pub(super) fn first(&self) -> EventId {
        self.first
    }

    /// Returns the number of events that are not evicted.
    pub(super) fn len(&self) -> usize {
        self.marks.len() - self.evicted
    }

    /// Returns the entry at an index, as it was published.
    pub(super) fn entry(&self, index: usize) -> Option<Entry> {
        let at = self.evicted + index;
        let mark = self.marks.get(at)?;
        let middle = &self.middles[self.start(at)..mark.end as usize];
        let head = [&self.prefix, middle, &self.suffix].concat();
        Some(Entry {
            event: StreamEvent {
                id: EventId {
                    seq: self.first.seq + index as u64,
                    attempt: self.first.attempt,
                },
                event: self.event.clone(),
                data: EventData::with_tail(head.into(), self.tail.clone()),
            },
            at: self.at + std::time::Duration::from_millis(mark.after_millis.into()),
        })
    }

    /// Evicts the first event.
    pub(super) fn evict_first(&mut self) {
        self.evicted += 1;
        self.first.seq += 1;
    }

    /// Returns the bytes of the events that are not evicted, and of what they share.
    pub(super) fn size(&self) -> usize {
        let shared = self.prefix.len() + self.suffix.len() + self.event.len();
        let own = self.middles.len() - self.start(self.evicted);
        size_of::<Self>() + shared + own + self.len() * size_of::<Mark>()
    }

    /// Frees memory for events that did not come.
    pub(super) fn shrink_to_fit(&mut self) {
        self.middles.shrink_to_fit();
        self.marks.shrink_to_fit();
    }

    fn start(&self, at: usize) -> usize {
        let before = at.checked_sub(1).and_then(|at| self.marks.get(at));
        before.map_or(0, |mark| mark.end as usize)
    }
}

/// Reports whether the data of an entry has at most two pieces, and only the second is shared with
/// other events.
fn is_packable(entry: &Entry) -> bool {
    let data = &entry.event.data;
    data.own_len() == data.head().len() && data.len() == data.head().len() + data.tail().len()
}

/// Reports whether a pack saves memory that justifies a copy of the rest of a text, of which it has
/// `shared` bytes.
fn is_worth_a_copy(text: &[u8], shared: usize) -> bool {
    text.len() <= SHORT_BYTES || shared >= text.len() / 2
}

/// Reports whether `other` has the name, the attempt and the shared piece of `entry`.
fn is_alike(entry: &Entry, other: &Entry) -> bool {
    is_packable(other)
        && entry.event.event == other.event.event
        && entry.event.id.attempt == other.event.id.attempt
        && entry.event.data.tail() == other.event.data.tail()
}

/// Lengths of the bytes that several texts share.
#[derive(Debug, Clone, Copy)]
struct Shared {
    /// Length of the beginning of all texts.
    prefix: usize,
    /// Length of the end of all texts. In a short text it overlaps with the beginning.
    suffix: usize,
    /// Length of the shortest text.
    shortest: usize,
}

impl Shared {
    /// Returns what a text shares with itself.
    fn whole(text: &[u8]) -> Self {
        Self {
            prefix: text.len(),
            suffix: text.len(),
            shortest: text.len(),
        }
    }

    /// Returns what the texts share with one more. `text` is one of them.
    fn with(self, text: &[u8], other: &[u8]) -> Self {
        Self {
            prefix: common_prefix(&text[..self.prefix], other),
            suffix: common_suffix(&text[text.len() - self.suffix..], other),
            shortest: self.shortest.min(other.len()),
        }
    }

    /// Returns the number of bytes that each text need not repeat.
    fn bytes(self) -> usize {
        (self.prefix + self.suffix).min(self.shortest)
    }
}

/// Number of bytes that are compared at once: texts may be large.
const BLOCK: usize = 64;

fn common_prefix(text: &[u8], other: &[u8]) -> usize {
    let blocks = text.chunks_exact(BLOCK).zip(other.chunks_exact(BLOCK));
    let same = BLOCK * blocks.take_while(|(a, b)| a == b).count();
    let rest = text[same..].iter().zip(&other[same..]);
    same + rest.take_while(|(a, b)| a == b).count()
}

fn common_suffix(text: &[u8], other: &[u8]) -> usize {
    let blocks = text.rchunks_exact(BLOCK).zip(other.rchunks_exact(BLOCK));
    let same = BLOCK * blocks.take_while(|(a, b)| a == b).count();
    let rest = text[..text.len() - same].iter().rev();
    let rest = rest.zip(other[..other.len() - same].iter().rev());
    same + rest.take_while(|(a, b)| a == b).count()
}
