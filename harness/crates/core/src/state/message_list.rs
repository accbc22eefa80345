//! The message list of a state: messages, their positions in the thread's log, and hashes of their
//! ids.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use crate::messages::Message;

/// Messages with their positions in the thread's log; `None` for an unstored message.
///
/// Clones share all parts until one of them changes, because a run clones its state at every step
/// and each copy of a message costs an access to its memory. A lookup by id compares hashes first,
/// for the same reason.
#[derive(Debug, Clone, Default)]
pub(super) struct MessageList {
    messages: Arc<Vec<Message>>,
    places: Arc<Vec<Option<u64>>>,
    id_hashes: Arc<Vec<u32>>,
}

impl MessageList {
    /// Creates a list from messages and their positions.
    pub(super) fn new(messages: Vec<Message>, places: Vec<Option<u64>>) -> Self {
        debug_assert_eq!(messages.len(), places.len());
        let id_hashes = messages.iter().map(id_hash).collect();
        Self {
            messages: Arc::new(messages),
            places: Arc::new(places),
            id_hashes: Arc::new(id_hashes),
        }
    }

    /// Creates a list of unstored messages.
    pub(super) fn unstored(messages: Vec<Message>) -> Self {
        let places = vec![None; messages.len()];
        Self::new(messages, places)
    }

    /// Returns the messages in order.
    pub(super) fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// Returns each message's position in the log.
    pub(super) fn places(&self) -> &[Option<u64>] {
        &self.places
    }

    /// Returns the index of the last message with this id.
    pub(super) fn find(&self, id: &str) -> Option<usize> {
        let hash = hash_of(id);
        let mut end = self.id_hashes.len();
        while let Some(at) = self.id_hashes[..end].iter().rposition(|&own| own == hash) {
            if self.messages[at].id.as_deref() == Some(id) {
                return Some(at);
            }
            end = at;
        }
        None
    }

    /// Sets the positions of some messages, by index.
    pub(super) fn add_places(&mut self, added: &[(usize, u64)]) {
        if added.is_empty() {
            return;
        }
        let places = Arc::make_mut(&mut self.places);
        for &(at, place) in added {
            places[at] = Some(place);
        }
    }

    /// Marks every message as unstored.
    pub(super) fn forget_places(&mut self) {
        Arc::make_mut(&mut self.places).fill(None);
    }

    /// Removes all messages.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Adds an unstored message.
    pub(super) fn push(&mut self, message: Message) {
        Arc::make_mut(&mut self.id_hashes).push(id_hash(&message));
        Arc::make_mut(&mut self.places).push(None);
        Arc::make_mut(&mut self.messages).push(message);
    }

    /// Replaces a message, which is unstored then.
    pub(super) fn replace(&mut self, at: usize, message: Message) {
        Arc::make_mut(&mut self.id_hashes)[at] = id_hash(&message);
        Arc::make_mut(&mut self.places)[at] = None;
        Arc::make_mut(&mut self.messages)[at] = message;
    }

    /// Keeps the messages whose index satisfies `stays`.
    pub(super) fn retain(&mut self, stays: impl Fn(usize) -> bool) {
        retain_at(&mut self.messages, &stays);
        retain_at(&mut self.places, &stays);
        retain_at(&mut self.id_hashes, &stays);
    }
}

fn retain_at<T: Clone>(list: &mut Arc<Vec<T>>, stays: &impl Fn(usize) -> bool) {
    let mut indexes = 0..;
    Arc::make_mut(list).retain(|_| indexes.next().is_some_and(stays));
}

fn id_hash(message: &Message) -> u32 {
    message.id.as_deref().map_or(0, hash_of)
}

/// Returns the lower half of the hash of an id. Equal hashes only cost a comparison of ids.
#[expect(clippy::cast_possible_truncation, reason = "the lower half is wanted")]
fn hash_of(id: &str) -> u32 {
    let mut hasher = DefaultHasher::new();
    id.hash(&mut hasher);
    hasher.finish() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(id: &str) -> Message {
        Message::human("x").with(|body| body.id = Some(id.to_owned()))
    }

    fn list(ids: &[&str]) -> MessageList {
        MessageList::unstored(ids.iter().map(|id| message(id)).collect())
    }

    #[test]
    fn last_message_with_an_id_is_found_after_every_change() {
        let mut list = list(&["a", "b", "a"]);
        list.push(Message::human("no id"));
        assert_eq!(
            ["a", "b", "c"].map(|id| list.find(id)),
            [Some(2), Some(1), None]
        );
        list.replace(2, message("c"));
        assert_eq!(["a", "c"].map(|id| list.find(id)), [Some(0), Some(2)]);
        list.retain(|at| at != 0);
        assert_eq!(
            ["a", "b", "c"].map(|id| list.find(id)),
            [None, Some(0), Some(1)]
        );
        list.clear();
        assert_eq!(list.find("b"), None);
    }

    #[test]
    fn clones_share_their_parts_until_one_changes() {
        let original = list(&["a", "b"]);
        let mut copy = original.clone();
        copy.add_places(&[]);
        assert!(Arc::ptr_eq(&copy.places, &original.places));
        copy.add_places(&[(1, 7)]);
        assert!(Arc::ptr_eq(&copy.messages, &original.messages));
        assert_eq!(
            (copy.places(), original.places()),
            (&[None, Some(7)][..], &[None, None][..])
        );
        copy.push(message("c"));
        assert_eq!((copy.messages().len(), original.messages().len()), (3, 2));
    }
}
