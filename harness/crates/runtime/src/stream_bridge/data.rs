//! JSON of an event in two pieces, so that a piece shared by many events is stored once.

use std::fmt;

use bytes::{Bytes, BytesMut};

/// Data of an event: the bytes of `head` followed by those of `tail`. Clones share both.
#[derive(Clone, Default)]
pub struct EventData {
    head: Bytes,
    tail: Bytes,
    /// Length of the pieces that no other event shares.
    own_len: usize,
}

impl EventData {
    /// Creates data whose tail is shared with other events.
    pub fn with_tail(head: Bytes, tail: Bytes) -> Self {
        let own_len = head.len();
        Self {
            head,
            tail,
            own_len,
        }
    }

    /// Creates data whose head is shared with earlier events.
    pub fn with_head(head: Bytes, tail: Bytes) -> Self {
        let own_len = tail.len();
        Self {
            head,
            tail,
            own_len,
        }
    }

    /// Creates data of two pieces that no other event has so far.
    pub fn of_pieces(head: Bytes, tail: Bytes) -> Self {
        let own_len = head.len() + tail.len();
        Self {
            head,
            tail,
            own_len,
        }
    }

    /// Returns the pieces in order; the second is often empty.
    pub fn pieces(&self) -> [&Bytes; 2] {
        [&self.head, &self.tail]
    }

    /// Returns the length in bytes.
    pub fn len(&self) -> usize {
        self.head.len() + self.tail.len()
    }

    /// Reports whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the bytes that this event adds to memory, without a shared piece.
    pub fn own_len(&self) -> usize {
        self.own_len
    }

    /// Reports whether the head is that of `other` in memory and the tails are equal. Does not read
    /// the head.
    pub(crate) fn has_pieces_of(&self, other: &Self) -> bool {
        let is_same_head =
            self.head.as_ptr() == other.head.as_ptr() && self.head.len() == other.head.len();
        is_same_head && self.tail == other.tail
    }

    /// Returns all bytes as one piece; copies only if there are two.
    pub fn into_bytes(self) -> Bytes {
        if self.tail.is_empty() {
            return self.head;
        }
        let mut whole = BytesMut::with_capacity(self.len());
        whole.extend_from_slice(&self.head);
        whole.extend_from_slice(&self.tail);
        whole.freeze()
    }
}

impl From<Bytes> for EventData {
    fn from(head: Bytes) -> Self {
        Self::of_pieces(head, Bytes::new())
    }
}

impl PartialEq for EventData {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len()
            && self
                .head
                .iter()
                .chain(&self.tail)
                .eq(other.head.iter().chain(&other.tail))
    }
}

impl fmt::Debug for EventData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}{}",
            String::from_utf8_lossy(&self.head),
            String::from_utf8_lossy(&self.tail)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn split_position_does_not_affect_data() {
        let whole = EventData::from(Bytes::from_static(b"[1,{}]"));
        let cut = EventData::with_tail(Bytes::from_static(b"[1"), Bytes::from_static(b",{}]"));
        assert_eq!((&whole, whole.len()), (&cut, cut.len()));
        let [head, tail] = cut.pieces().map(Clone::clone);
        let shared_head = EventData::with_head(head.clone(), tail.clone());
        let unshared = EventData::of_pieces(head, tail);
        assert_eq!((&shared_head, &unshared), (&whole, &whole));
        let own = [&whole, &cut, &shared_head, &unshared].map(EventData::own_len);
        assert_eq!(own, [6, 2, 4, 6]);
        assert_ne!(
            whole,
            EventData::with_tail(Bytes::from_static(b"[1"), Bytes::from_static(b",[]]"))
        );
        assert_eq!(cut.into_bytes(), whole.into_bytes());
    }
}
