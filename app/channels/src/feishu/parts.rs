//! Events that arrive in several frames.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::time::Instant;

/// Maximum size of a joined payload, and of all waiting parts.
pub(super) const MAX_JOINED_BYTES: usize = 8 * 1024 * 1024;
/// Maximum number of parts of one event.
const MAX_PARTS: u32 = 4096;
/// Maximum number of incomplete events.
const MAX_INCOMPLETE: usize = 64;
/// Silence after which an incomplete event is dropped.
const SILENCE: Duration = Duration::from_secs(5);

/// Effect of one part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Joined {
    /// The event is complete.
    Complete(Bytes),
    /// Other parts are missing.
    Waiting,
    /// All parts have arrived, but they exceed the limit together.
    TooLarge,
    /// The numbers of the part contradict each other.
    Invalid,
}

/// Incomplete event.
#[derive(Debug)]
struct Incomplete {
    sum: u32,
    parts: BTreeMap<u32, Bytes>,
    bytes: usize,
    /// `true` after the limit was exceeded: the bytes are dropped, the numbers are kept.
    too_large: bool,
    touched: Instant,
}

/// Parts of incomplete events.
#[derive(Debug, Default)]
pub(super) struct PartBuffer {
    events: HashMap<String, Incomplete>,
}

impl PartBuffer {
    /// Adds a part and returns the event if it is complete. Parts are joined in the order of their
    /// numbers.
    pub(super) fn add(
        &mut self,
        id: &str,
        sum: u32,
        seq: u32,
        payload: Bytes,
        now: Instant,
    ) -> Joined {
        self.expire(now);
        if sum <= 1 {
            return Joined::Complete(payload);
        }
        if seq >= sum || sum > MAX_PARTS {
            return Joined::Invalid;
        }
        self.make_room(id, payload.len());
        let event = self
            .events
            .entry(id.to_owned())
            .or_insert_with(|| Incomplete {
                sum,
                parts: BTreeMap::new(),
                bytes: 0,
                too_large: false,
                touched: now,
            });
        if event.sum != sum {
            return Joined::Invalid;
        }
        event.touched = now;
        event.insert(seq, payload);
        if event.parts.len() < sum as usize {
            return Joined::Waiting;
        }
        self.events
            .remove(id)
            .map_or(Joined::Invalid, Incomplete::join)
    }

    /// Drops events without a new part for longer than the limit.
    pub(super) fn expire(&mut self, now: Instant) {
        self.events
            .retain(|_, event| now.duration_since(event.touched) <= SILENCE);
    }

    /// Drops the oldest other events until a part fits.
    fn make_room(&mut self, id: &str, bytes: usize) {
        loop {
            let total: usize = self.events.values().map(|event| event.bytes).sum();
            let is_new = !self.events.contains_key(id);
            if total + bytes <= MAX_JOINED_BYTES && (!is_new || self.events.len() < MAX_INCOMPLETE)
            {
                return;
            }
            let oldest = self
                .events
                .iter()
                .filter(|(other, _)| *other != id)
                .min_by_key(|(_, event)| event.touched)
                .map(|(other, _)| other.clone());
            match oldest {
                Some(oldest) => drop(self.events.remove(&oldest)),
                None => return,
            }
        }
    }
}

impl Incomplete {
    fn insert(&mut self, seq: u32, payload: Bytes) {
        let payload = if self.too_large {
            Bytes::new()
        } else {
            payload
        };
        self.bytes += payload.len();
        if let Some(previous) = self.parts.insert(seq, payload) {
            self.bytes -= previous.len();
        }
        if self.bytes > MAX_JOINED_BYTES {
            self.too_large = true;
            self.bytes = 0;
            for part in self.parts.values_mut() {
                *part = Bytes::new();
            }
        }
    }

    fn join(self) -> Joined {
        if self.too_large {
            return Joined::TooLarge;
        }
        let mut joined = BytesMut::with_capacity(self.bytes);
        for part in self.parts.values() {
            joined.extend_from_slice(part);
        }
        Joined::Complete(joined.freeze())
    }
}

#[cfg(test)]
#[path = "parts_tests.rs"]
mod tests;
