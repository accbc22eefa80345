//! Message lists of a thread apart from its conversation, such as the turns of agents' sessions.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use indexmap::IndexMap;
use serde_json::{Map, Value};

use crate::messages::Message;

/// Message lists of a thread apart from its conversation, by name.
///
/// Their messages are in the thread's log, as those of the conversation: a checkpoint writes new
/// ones and refers to the others. They are no values of the state, so clients do not receive them.
/// Clones share the lists.
#[derive(Debug, Clone, Default)]
pub struct Histories(BTreeMap<Arc<str>, Arc<History>>);

#[derive(Debug, Clone, Default)]
struct History {
    /// Number of messages that were removed from the front.
    removed: usize,
    entries: VecDeque<Entry>,
}

#[derive(Debug, Clone)]
struct Entry {
    message: Message,
    /// Position in the thread's log; `None` for an unstored message.
    place: Option<u64>,
}

/// Names and messages decide, as in the comparison of states.
impl PartialEq for Histories {
    fn eq(&self, other: &Self) -> bool {
        self.0.len() == other.0.len()
            && self
                .iter()
                .zip(other.iter())
                .all(|((name, own), (others_name, others))| name == others_name && own.eq(others))
    }
}

impl Histories {
    /// Key among the stored channels: the number of messages of each history. Their positions
    /// follow those of the conversation, in the same order. No channel can have this name.
    pub const KEY: &str = "__histories__";

    /// Reports whether there is no message.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the names and messages of all histories, the oldest message first.
    pub fn iter(&self) -> impl Iterator<Item = (&str, impl Iterator<Item = &Message>)> {
        self.0.iter().map(|(name, history)| {
            let entries = history.entries.iter();
            (&**name, entries.map(|entry| &entry.message))
        })
    }

    /// Adds messages to the end of a history, and removes the oldest ones beyond `most`.
    pub fn push(&mut self, name: &str, messages: impl IntoIterator<Item = Message>, most: usize) {
        let unstored = |message| Entry {
            message,
            place: None,
        };
        if !self.0.contains_key(name) {
            self.0.insert(name.into(), Arc::default());
        }
        let Some(history) = self.0.get_mut(name).map(Arc::make_mut) else {
            return;
        };
        history.entries.extend(messages.into_iter().map(unstored));
        let excess = history.entries.len().saturating_sub(most);
        history.entries.drain(..excess);
        history.removed += excess;
        if history.entries.is_empty() {
            self.0.remove(name);
        }
    }

    /// Removes all histories.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Returns the position of every message in the thread's log; `None` for unstored ones.
    pub fn log_places(&self) -> impl Iterator<Item = Option<u64>> + '_ {
        let entries = self.0.values().flat_map(|history| &history.entries);
        entries.map(|entry| entry.place)
    }

    /// Marks every message as unstored: the next checkpoint writes all of them to the log again.
    pub fn forget_log_places(&mut self) {
        for history in self.0.values_mut() {
            for entry in &mut Arc::make_mut(history).entries {
                entry.place = None;
            }
        }
    }

    /// Gives unstored messages the positions that `store` returns. Returns the positions of all.
    pub fn set_log_places(&mut self, mut store: impl FnMut(&Message) -> u64) -> Vec<u64> {
        for history in self.0.values_mut() {
            if history.entries.iter().all(|entry| entry.place.is_some()) {
                continue;
            }
            for entry in &mut Arc::make_mut(history).entries {
                entry.place.get_or_insert_with(|| store(&entry.message));
            }
        }
        self.log_places().flatten().collect()
    }

    /// Copies the positions of `earlier`, stored histories of the same thread.
    pub(super) fn keep_log_places(&mut self, earlier: &Self) {
        for (name, history) in &mut self.0 {
            let Some(earlier) = earlier.0.get(name) else {
                continue;
            };
            if history.entries.iter().all(|entry| entry.place.is_some()) {
                continue;
            }
            let history = Arc::make_mut(history);
            for (at, entry) in (history.removed..).zip(&mut history.entries) {
                let known = at
                    .checked_sub(earlier.removed)
                    .and_then(|at| earlier.entries.get(at))
                    .filter(|known| known.message == entry.message);
                entry.place = entry.place.or(known.and_then(|known| known.place));
            }
        }
    }

    /// Returns the number of messages by name, as checkpoints store it; `None` without messages.
    pub fn lengths(&self) -> Option<Value> {
        let length = |(name, history): (&Arc<str>, &Arc<History>)| {
            (name.to_string(), Value::from(history.entries.len()))
        };
        (!self.is_empty()).then(|| self.0.iter().map(length).collect::<Map<_, _>>().into())
    }

    /// Removes the lengths of the histories from stored channels and returns them. A value that is
    /// no length counts as 0.
    pub fn take_lengths(channels: &mut IndexMap<String, Value>) -> Vec<(String, usize)> {
        let Some(Value::Object(lengths)) = channels.shift_remove(Self::KEY) else {
            return Vec::new();
        };
        let length = |value: &Value| value.as_u64().and_then(|length| length.try_into().ok());
        let entry = |(name, value): (String, Value)| (name, length(&value).unwrap_or(0));
        lengths.into_iter().map(entry).collect()
    }

    /// Removes the messages of histories of these lengths from the end of stored messages.
    pub(super) fn split_off(stored: &mut Vec<(u64, Message)>, lengths: &[(String, usize)]) -> Self {
        let total = lengths
            .iter()
            .fold(0_usize, |total, (_, length)| total.saturating_add(*length));
        let mut rest = stored
            .split_off(stored.len().saturating_sub(total))
            .into_iter();
        let mut histories = Self::default();
        for (name, length) in lengths {
            let restored = |(place, message)| Entry {
                message,
                place: Some(place),
            };
            let entries: VecDeque<Entry> = rest.by_ref().take(*length).map(restored).collect();
            if !entries.is_empty() {
                let history = History {
                    removed: 0,
                    entries,
                };
                histories.0.insert(name.as_str().into(), Arc::new(history));
            }
        }
        histories
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::ThreadState;

    fn texts(histories: &Histories, name: &str) -> Vec<String> {
        histories
            .iter()
            .filter(|(known, _)| *known == name)
            .flat_map(|(_, messages)| messages)
            .map(|message| message.content.text())
            .collect()
    }

    #[test]
    fn history_keeps_its_newest_messages() {
        let mut histories = Histories::default();
        histories.push("a", ["1", "2", "3"].map(Message::human), 2);
        histories.push("a", [Message::ai("4")], 2);
        assert_eq!(texts(&histories, "a"), ["3", "4"]);
        histories.push("a", [], 0);
        assert!(histories.is_empty());
    }

    #[test]
    fn log_places_of_an_earlier_state_are_kept() {
        let mut own = Histories::default();
        own.push("a", ["x", "x"].map(Message::human), 3);
        let mut stored = own.clone();
        let mut tail = 10;
        let mut next = |_: &Message| {
            tail += 1;
            tail
        };
        assert_eq!(stored.set_log_places(&mut next), [11, 12]);
        own.push("a", ["x", "y"].map(Message::human), 3);
        own.keep_log_places(&stored);
        let places: Vec<_> = own.log_places().collect();
        assert_eq!(places, [Some(12), None, None]);
        let mut other = Histories::default();
        other.push("a", [Message::human("other")], 3);
        other.keep_log_places(&stored);
        assert_eq!(other.log_places().collect::<Vec<_>>(), [None]);
    }

    #[test]
    fn restored_state_separates_histories_from_the_conversation() {
        let log = ["hello", "a1", "a2", "b1"].map(Message::human);
        let lengths = serde_json::json!({"a": 2, "b": 1});
        let channels = [(Histories::KEY.to_owned(), lengths.clone())];
        let state = ThreadState::restored((1..).zip(log), channels.into_iter().collect());
        assert_eq!(state.messages(), [Message::human("hello")]);
        assert_eq!(state.log_places(), [Some(1)]);
        assert_eq!(texts(state.histories(), "a"), ["a1", "a2"]);
        assert_eq!(state.histories().lengths(), Some(lengths));
        assert!(state.channels().is_empty());
        let wire = serde_json::to_value(&state).expect("valid");
        assert_eq!(wire.as_object().map(Map::len), Some(1), "{wire}");
    }

    #[test]
    fn lengths_that_exceed_the_log_are_not_a_panic() {
        let lengths = serde_json::json!({"a": u64::MAX, "b": u64::MAX, "c": "x"});
        let channels = [(Histories::KEY.to_owned(), lengths)];
        let log = [(1, Message::human("a1"))];
        let state = ThreadState::restored(log, channels.into_iter().collect());
        assert_eq!(texts(state.histories(), "a"), ["a1"]);
    }
}
