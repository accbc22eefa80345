//! JSON in pieces, so that a piece shared by many events is stored once.

use std::fmt;
use std::iter;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};

/// Data of an event or a state: the bytes of its pieces in order. Clones share all of them.
#[derive(Clone, Default)]
pub struct EventData {
    head: Bytes,
    /// Pieces between the head and the tail. Only states with large messages have some.
    middle: Option<Arc<[Bytes]>>,
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
            middle: None,
            tail,
            own_len,
        }
    }

    /// Creates data of two pieces that no other event has so far.
    pub fn of_pieces(head: Bytes, tail: Bytes) -> Self {
        let own_len = head.len() + tail.len();
        Self {
            head,
            middle: None,
            tail,
            own_len,
        }
    }

    /// Creates data that begins with pieces of earlier events, followed by its own.
    pub(crate) fn continuing(shared: &[Bytes], own: &[Bytes]) -> Self {
        let own_len = own.iter().map(Bytes::len).sum();
        let mut data = Self::from([shared, own].concat());
        data.own_len = own_len;
        data
    }

    /// Returns the pieces in order; some may be empty.
    pub fn pieces(&self) -> impl Iterator<Item = &Bytes> {
        let middle = self.middle.as_deref().unwrap_or_default();
        iter::once(&self.head)
            .chain(middle)
            .chain(iter::once(&self.tail))
    }

    /// Returns the pieces in order; some may be empty.
    pub fn into_pieces(self) -> impl Iterator<Item = Bytes> {
        let middle = self.middle.map_or_else(Vec::new, |middle| middle.to_vec());
        iter::once(self.head)
            .chain(middle)
            .chain(iter::once(self.tail))
    }

    /// Returns the first piece.
    pub fn head(&self) -> &Bytes {
        &self.head
    }

    /// Returns the last piece; empty if there is one piece.
    pub fn tail(&self) -> &Bytes {
        &self.tail
    }

    /// Returns the length in bytes.
    pub fn len(&self) -> usize {
        self.pieces().map(Bytes::len).sum()
    }

    /// Reports whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the bytes that this event adds to memory, without a shared piece.
    pub fn own_len(&self) -> usize {
        self.own_len
    }

    /// Reports whether both have the same pieces, each of the same memory or of equal bytes. Data
    /// that is split at other positions is different.
    pub(crate) fn has_pieces_of(&self, other: &Self) -> bool {
        let is_same = |(piece, other): (&Bytes, &Bytes)| {
            (piece.as_ptr(), piece.len()) == (other.as_ptr(), other.len()) || piece == other
        };
        let middle_len = |data: &Self| data.middle.as_ref().map_or(0, |middle| middle.len());
        middle_len(self) == middle_len(other) && self.pieces().zip(other.pieces()).all(is_same)
    }

    /// Returns all bytes as one piece; copies unless the first piece has all of them.
    pub fn into_bytes(self) -> Bytes {
        let len = self.len();
        if self.head.len() == len {
            return self.head;
        }
        let mut whole = BytesMut::with_capacity(len);
        self.pieces()
            .for_each(|piece| whole.extend_from_slice(piece));
        whole.freeze()
    }
}

impl From<Bytes> for EventData {
    fn from(head: Bytes) -> Self {
        Self::of_pieces(head, Bytes::new())
    }
}

impl From<Vec<Bytes>> for EventData {
    /// Creates data of pieces that no other event has so far.
    fn from(mut pieces: Vec<Bytes>) -> Self {
        let own_len = pieces.iter().map(Bytes::len).sum();
        let tail = match pieces.len() {
            0 | 1 => None,
            _ => pieces.pop(),
        };
        let mut pieces = pieces.into_iter();
        let head = pieces.next().unwrap_or_default();
        Self {
            head,
            middle: (pieces.len() > 0).then(|| pieces.collect()),
            tail: tail.unwrap_or_default(),
            own_len,
        }
    }
}

impl PartialEq for EventData {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.pieces().flatten().eq(other.pieces().flatten())
    }
}

impl fmt::Debug for EventData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.pieces()
            .try_for_each(|piece| write!(f, "{}", String::from_utf8_lossy(piece)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn split_position_does_not_affect_data() {
        let whole = EventData::from(Bytes::from_static(b"[1,{}]"));
        let (head, tail) = (Bytes::from_static(b"[1"), Bytes::from_static(b",{}]"));
        let cut = EventData::with_tail(head.clone(), tail.clone());
        assert_eq!((&whole, whole.len()), (&cut, cut.len()));
        let shared_head = EventData::continuing(std::slice::from_ref(&head), &[tail]);
        let thirds = ["[1", ",{", "}]"].map(|piece| Bytes::from_static(piece.as_bytes()));
        let many = EventData::from(thirds.clone().to_vec());
        assert_eq!((&shared_head, &many), (&whole, &whole));
        let own = [&whole, &cut, &shared_head, &many].map(EventData::own_len);
        assert_eq!(own, [6, 2, 4, 6]);
        let other_tail = EventData::with_tail(head, Bytes::from_static(b",[]]"));
        assert_ne!(whole, other_tail);
        let other_end = EventData::continuing(&thirds[..2], &[Bytes::from_static(b"]]")]);
        assert_eq!(format!("{other_end:?}"), "[1,{]]");
        let copy = EventData::from(thirds.map(|piece| piece.to_vec().into()).to_vec());
        let same = [&many, &copy, &other_end, &whole].map(|data| data.has_pieces_of(&many));
        assert_eq!(same, [true, true, false, false]);
        for data in [cut, many] {
            assert_eq!(data.into_bytes(), whole.clone().into_bytes());
        }
    }

    #[test]
    fn data_of_few_pieces_has_them_at_its_ends() {
        let pieces = |texts: &[&'static str]| {
            let pieces: Vec<_> = texts
                .iter()
                .map(|text| Bytes::from_static(text.as_bytes()))
                .collect();
            let data = EventData::from(pieces);
            let is_split = data.middle.is_some();
            (data.head().clone(), data.tail().clone(), is_split)
        };
        assert_eq!(pieces(&[]), (Bytes::new(), Bytes::new(), false));
        assert_eq!(pieces(&["a"]), ("a".into(), Bytes::new(), false));
        assert_eq!(pieces(&["a", "b"]), ("a".into(), "b".into(), false));
        assert_eq!(pieces(&["a", "b", "c"]), ("a".into(), "c".into(), true));
    }
}
