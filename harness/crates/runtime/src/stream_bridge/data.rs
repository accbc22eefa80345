//! JSON of an event in two pieces, so that a tail shared by many events is stored once.

use std::fmt;

use bytes::{Bytes, BytesMut};

/// Data of an event: the bytes of `head` followed by those of `tail`. Clones share both.
#[derive(Clone, Default)]
pub struct EventData {
    head: Bytes,
    tail: Bytes,
}

impl EventData {
    /// Creates data whose tail is shared with other events.
    pub fn with_tail(head: Bytes, tail: Bytes) -> Self {
        Self { head, tail }
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

    /// Returns the bytes that this event adds to memory, without the shared tail.
    pub fn own_len(&self) -> usize {
        self.head.len()
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
        Self {
            head,
            tail: Bytes::new(),
        }
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
        assert_ne!(
            whole,
            EventData::with_tail(Bytes::from_static(b"[1"), Bytes::from_static(b",[]]"))
        );
        assert_eq!(cut.into_bytes(), whole.into_bytes());
    }
}
