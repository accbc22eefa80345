//! Reduces incoming messages into a message list in time linear in both lengths.

use std::collections::{HashMap, HashSet};

use super::message_list::MessageList;
use super::reducers::StateError;
use crate::ids::IdSource;
use crate::messages::{Message, MessageKind, REMOVE_ALL};

/// Maximum length of an incoming list for which scanning the existing list is cheaper than indexing
/// it.
const MAX_SCANNED: usize = 32;

/// Effect of incoming messages on a list, computed before anything is changed.
#[derive(Debug, Default)]
pub(super) struct MessageChanges {
    /// `true` if all existing messages are dropped first.
    pub(super) clears: bool,
    /// Messages for positions of the list after `clears`; the position equal to the length appends.
    pub(super) writes: Vec<(usize, Message)>,
    /// Positions that are removed after the writes.
    pub(super) removed: HashSet<usize>,
    /// Length of the list after the writes.
    written_len: usize,
}

impl MessageChanges {
    /// Returns the length of the list after all changes.
    pub(super) fn len(&self) -> usize {
        self.written_len - self.removed.len()
    }
}

/// Plans the reduction of `incoming` into `existing`.
///
/// A message with an existing id replaces that message at its position, one with a new id is
/// appended, and a remove marker deletes. A later message with the same id cancels the removal.
/// [`REMOVE_ALL`] drops all messages before it, existing and incoming. Messages without an id get
/// one from `ids`.
///
/// # Errors
/// [`StateError::UnknownMessage`] if a marker names an id that is neither in the list nor incoming
/// before it.
pub(super) fn plan(
    existing: &MessageList,
    mut incoming: Vec<Message>,
    ids: &dyn IdSource,
) -> Result<MessageChanges, StateError> {
    let after_clear = incoming
        .iter()
        .rposition(is_remove_all)
        .map_or(0, |at| at + 1);
    let clears = after_clear > 0;
    let empty = MessageList::default();
    let existing = if clears { &empty } else { existing };
    incoming.drain(..after_clear);
    let mut positions = Positions::new(existing, incoming.len());
    let mut changes = MessageChanges {
        clears,
        ..MessageChanges::default()
    };
    let mut len = existing.messages().len();
    for message in incoming {
        let id = message.id.clone().unwrap_or_else(|| ids.message_id());
        let at = positions.of(&id);
        if matches!(message.kind, MessageKind::Remove) {
            changes
                .removed
                .insert(at.ok_or(StateError::UnknownMessage(id))?);
            continue;
        }
        let at = at.unwrap_or_else(|| {
            len += 1;
            positions.append(id.clone(), len - 1);
            len - 1
        });
        changes.removed.remove(&at);
        let message = if message.id.is_some() {
            message
        } else {
            message.into_with(|body| body.id = Some(id))
        };
        changes.writes.push((at, message));
    }
    changes.written_len = len;
    Ok(changes)
}

/// Finds the position of an id among existing and appended messages; the last one if several have
/// it.
pub(super) struct Positions<'a> {
    existing: &'a MessageList,
    /// Positions in the existing list, if it is indexed.
    indexed: Option<HashMap<&'a str, usize>>,
    appended: HashMap<String, usize>,
}

impl<'a> Positions<'a> {
    pub(super) fn new(existing: &'a MessageList, lookups: usize) -> Self {
        let is_indexed = lookups > MAX_SCANNED;
        Self {
            existing,
            indexed: is_indexed.then(|| index_by_id(existing.messages())),
            appended: HashMap::new(),
        }
    }

    pub(super) fn of(&self, id: &str) -> Option<usize> {
        let appended = self.appended.get(id).copied();
        appended.or_else(|| match &self.indexed {
            Some(indexed) => indexed.get(id).copied(),
            None => self.existing.find(id),
        })
    }

    fn append(&mut self, id: String, at: usize) {
        self.appended.insert(id, at);
    }
}

/// Maps each id to its last position.
fn index_by_id(messages: &[Message]) -> HashMap<&str, usize> {
    messages
        .iter()
        .enumerate()
        .filter_map(|(at, message)| Some((message.id.as_deref()?, at)))
        .collect()
}

fn is_remove_all(message: &Message) -> bool {
    matches!(message.kind, MessageKind::Remove) && message.id.as_deref() == Some(REMOVE_ALL)
}

#[cfg(test)]
#[path = "message_reducer_tests.rs"]
mod tests;
