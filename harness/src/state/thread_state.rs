//! The state itself: a message list with the places of its messages in the thread's log, and channel values.

use indexmap::IndexMap;
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use super::reducers::{CHANNELS, Reducer, StateError, reduce, reducer_of};
use super::update::StateUpdate;
use crate::ids::IdSource;
use crate::messages::{Message, MessageKind, REMOVE_ALL};

/// Messages and channels of a thread at one moment.
///
/// Each message knows its place in the thread's append-only log once it is stored there; a message that was added or
/// replaced since has none. A checkpoint writes only those and refers to the rest.
#[derive(Debug, Clone, Default)]
pub struct ThreadState {
    messages: Vec<Message>,
    log_places: Vec<Option<u64>>,
    channels: IndexMap<String, Value>,
}

impl PartialEq for ThreadState {
    fn eq(&self, other: &Self) -> bool {
        self.messages == other.messages && self.channels == other.channels
    }
}

impl ThreadState {
    /// A state as a store read it: every message with its place in the log.
    pub fn restored(messages: impl IntoIterator<Item = (u64, Message)>, channels: IndexMap<String, Value>) -> Self {
        let (log_places, messages) = messages.into_iter().map(|(place, message)| (Some(place), message)).unzip();
        Self { messages, log_places, channels }
    }

    /// The messages in order.
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// Each message's place in the thread's log; `None` for those not stored yet.
    pub fn log_places(&self) -> &[Option<u64>] {
        &self.log_places
    }

    /// Tells the state where its messages now stand in the log, in list order.
    pub fn set_log_places(&mut self, places: impl IntoIterator<Item = u64>) {
        for (slot, place) in self.log_places.iter_mut().zip(places) {
            *slot = Some(place);
        }
    }

    /// Takes over from an earlier state of the same thread where its messages stand in the log: an agent works on a copy
    /// of its own, which does not learn what was stored meanwhile.
    pub fn keep_log_places(&mut self, earlier: &Self) {
        for (at, (message, place)) in self.messages.iter().zip(&mut self.log_places).enumerate() {
            if place.is_some() {
                continue;
            }
            // Nearly always the list has only grown.
            let held = match earlier.messages.get(at) {
                Some(held) if held.id == message.id => Some(at),
                _ => earlier.messages.iter().rposition(|held| held.id == message.id),
            };
            *place = held.filter(|&held| earlier.messages[held] == *message).and_then(|held| earlier.log_places[held]);
        }
    }

    /// The value of a channel.
    pub fn channel(&self, name: &str) -> Option<&Value> {
        self.channels.get(name)
    }

    /// All channels that hold a value.
    pub fn channels(&self) -> &IndexMap<String, Value> {
        &self.channels
    }

    /// The thread's title, when it has a non-empty one.
    pub fn title(&self) -> Option<&str> {
        self.channel("title").and_then(Value::as_str).filter(|title| !title.is_empty())
    }

    /// Reduces one update. On an error the state is unchanged.
    pub fn apply(&mut self, update: StateUpdate, ids: &dyn IdSource) -> Result<(), StateError> {
        let mut next = self.clone();
        for (name, value) in update.channels {
            let held = next.channels.shift_remove(&name);
            if let Some(value) = reduce(&name, held, value)? {
                next.channels.insert(name, value);
            }
        }
        next.reduce_messages(update.messages, ids)?;
        *self = next;
        Ok(())
    }

    /// Reduces the updates of tasks that ran side by side, in call order.
    pub fn apply_parallel(&mut self, updates: Vec<StateUpdate>, ids: &dyn IdSource) -> Result<(), StateError> {
        let mut written: Vec<&str> = Vec::new();
        for name in updates.iter().flat_map(|update| update.channels.keys()) {
            if reducer_of(name) == Some(Reducer::LastWrite) {
                if written.contains(&name.as_str()) {
                    return Err(StateError::ParallelWrites(name.clone()));
                }
                written.push(name);
            }
        }
        let mut next = self.clone();
        for update in updates {
            next.apply(update, ids)?;
        }
        *self = next;
        Ok(())
    }

    /// Messages with a known id replace in place, new ones append, remove markers delete. A later message of the same id
    /// in one write cancels its removal.
    fn reduce_messages(&mut self, incoming: Vec<Message>, ids: &dyn IdSource) -> Result<(), StateError> {
        let after_clear = incoming.iter().rposition(is_remove_all).map_or(0, |at| at + 1);
        if after_clear > 0 {
            self.messages.clear();
            self.log_places.clear();
        }
        let mut removed: Vec<String> = Vec::new();
        for message in incoming.into_iter().skip(after_clear) {
            let id = message.id.clone().unwrap_or_else(|| ids.message_id());
            // The message replaced is nearly always one of the last, so the search starts there.
            let at = self.messages.iter().rposition(|held| held.id.as_deref() == Some(id.as_str()));
            if matches!(message.kind, MessageKind::Remove) {
                if at.is_none() {
                    return Err(StateError::UnknownMessage(id));
                }
                removed.push(id);
                continue;
            }
            removed.retain(|gone| *gone != id);
            let message = if message.id.is_some() { message } else { message.with(|body| body.id = Some(id)) };
            match at {
                Some(at) => {
                    if self.messages[at] != message {
                        self.messages[at] = message;
                        self.log_places[at] = None;
                    }
                }
                None => {
                    self.messages.push(message);
                    self.log_places.push(None);
                }
            }
        }
        for id in removed {
            if let Some(at) = self.messages.iter().rposition(|held| held.id.as_deref() == Some(id.as_str())) {
                self.messages.remove(at);
                self.log_places.remove(at);
            }
        }
        Ok(())
    }
}

fn is_remove_all(message: &Message) -> bool {
    matches!(message.kind, MessageKind::Remove) && message.id.as_deref() == Some(REMOVE_ALL)
}

/// The wire shape of a `values` frame. Messages contribute the JSON they already carry.
impl Serialize for ThreadState {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("messages", &self.messages)?;
        for (name, _) in CHANNELS {
            if let Some(value) = self.channels.get(*name) {
                map.serialize_entry(name, value)?;
            }
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for ThreadState {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        /// The fields as they are serialized.
        #[derive(Deserialize)]
        struct Fields {
            messages: Vec<Message>,
            #[serde(flatten)]
            channels: IndexMap<String, Value>,
        }
        let Fields { messages, channels } = Fields::deserialize(deserializer)?;
        Ok(Self { log_places: vec![None; messages.len()], messages, channels })
    }
}

#[cfg(test)]
#[path = "thread_state_tests.rs"]
mod tests;
