//! Reduces incoming messages into a message list in time linear in both lengths.

use std::collections::{HashMap, HashSet};

use super::reducers::StateError;
use crate::ids::IdSource;
use crate::messages::{Message, MessageKind, REMOVE_ALL};

/// The longest incoming list for which scanning the held list is cheaper than indexing it.
const MAX_SCANNED: usize = 4;

/// The effect of incoming messages on a list, decided before anything is changed.
#[derive(Debug, Default)]
pub(super) struct MessageChanges {
    /// Whether every held message is dropped first.
    pub(super) clears: bool,
    /// Messages for positions of the list after `clears`: one equal to the length appends.
    pub(super) writes: Vec<(usize, Message)>,
    /// Positions that are removed after the writes.
    pub(super) removed: HashSet<usize>,
    /// The length of the list after the writes.
    written_len: usize,
}

impl MessageChanges {
    /// The length of the list after all changes.
    pub(super) fn len(&self) -> usize {
        self.written_len - self.removed.len()
    }
}

/// Plans the reduction of `incoming` into `held`.
///
/// A known id replaces in place, a new one appends, a remove marker deletes. A later message with the same id cancels its
/// removal. [`REMOVE_ALL`] drops everything before it, in the list and among the incoming messages. Messages without an id get
/// one from `ids`.
///
/// # Errors
/// [`StateError::UnknownMessage`] when a marker names an id that is neither held nor incoming before it.
pub(super) fn plan(
    held: &[Message],
    mut incoming: Vec<Message>,
    ids: &dyn IdSource,
) -> Result<MessageChanges, StateError> {
    let after_clear = incoming
        .iter()
        .rposition(is_remove_all)
        .map_or(0, |at| at + 1);
    let clears = after_clear > 0;
    let held = if clears { &[] } else { held };
    incoming.drain(..after_clear);
    let mut positions = Positions::new(held, incoming.len());
    let mut changes = MessageChanges {
        clears,
        ..MessageChanges::default()
    };
    let mut len = held.len();
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

/// Finds the position of an id among held and appended messages; the last one where several have it.
pub(super) struct Positions<'a> {
    /// Scanned from its end; empty when it is indexed.
    scanned: &'a [Message],
    indexed: HashMap<&'a str, usize>,
    appended: HashMap<String, usize>,
}

impl<'a> Positions<'a> {
    pub(super) fn new(held: &'a [Message], lookups: usize) -> Self {
        let scans = lookups <= MAX_SCANNED;
        let indexed = if scans {
            HashMap::new()
        } else {
            index_by_id(held)
        };
        Self {
            scanned: if scans { held } else { &[] },
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
                .rposition(|held| held.id.as_deref() == Some(id))
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
