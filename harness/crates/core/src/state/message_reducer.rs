//! Reduces incoming messages into a message list in time linear in both lengths.

use std::collections::{HashMap, HashSet};

use super::reducers::StateError;
use crate::ids::IdSource;
use crate::messages::{Message, MessageKind, REMOVE_ALL};

/// Maximum length of an incoming list for which scanning the existing list is cheaper than indexing
/// it.
const MAX_SCANNED: usize = 4;

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
    existing: &[Message],
    mut incoming: Vec<Message>,
    ids: &dyn IdSource,
) -> Result<MessageChanges, StateError> {
    let after_clear = incoming
        .iter()
        .rposition(is_remove_all)
        .map_or(0, |at| at + 1);
    let clears = after_clear > 0;
    let existing = if clears { &[] } else { existing };
    incoming.drain(..after_clear);
    let mut positions = Positions::new(existing, incoming.len());
    let mut changes = MessageChanges {
        clears,
        ..MessageChanges::default()
    };
    let mut len = existing.len();
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
            message.with(|body| body.id = Some(id))
        };
        changes.writes.push((at, message));
    }
    changes.written_len = len;
    Ok(changes)
}

/// Finds the position of an id among existing and appended messages; the last one if several have
/// it.
pub(super) struct Positions<'a> {
    /// Scanned from the end; empty if the list is indexed.
    scanned: &'a [Message],
    indexed: HashMap<&'a str, usize>,
    appended: HashMap<String, usize>,
}

impl<'a> Positions<'a> {
    pub(super) fn new(existing: &'a [Message], lookups: usize) -> Self {
        let scans = lookups <= MAX_SCANNED;
        let indexed = if scans {
            HashMap::new()
        } else {
            index_by_id(existing)
        };
        Self {
            scanned: if scans { existing } else { &[] },
            indexed,
            appended: HashMap::new(),
        }
    }

    pub(super) fn of(&self, id: &str) -> Option<usize> {
        let appended = self
            .appended
            .get(id)
            .or_else(|| self.indexed.get(id))
            .copied();
        appended.or_else(|| {
            self.scanned
                .iter()
                .rposition(|existing| existing.id.as_deref() == Some(id))
        })
    }

    fn append(&mut self, id: String, at: usize) {
        self.appended.insert(id, at);
    }
}

/// Maps each id to its last position.
pub(super) fn index_by_id(messages: &[Message]) -> HashMap<&str, usize> {
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
