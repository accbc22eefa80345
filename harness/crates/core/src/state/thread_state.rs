//! The state of a thread: a message list with the positions of its messages in the thread's log,
//! and channel values.

use std::collections::HashSet;
use std::sync::Arc;

use indexmap::IndexMap;
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use super::channels::{Channels, Reducer, wire_order};
use super::histories::Histories;
use super::message_list::MessageList;
use super::message_reducer::{self, MessageChanges, Positions};
use super::reducers::{Reduction, StateError};
use super::update::StateUpdate;
use crate::ids::IdSource;
use crate::messages::{Message, MessageKind};

/// Messages and channels of a thread at one point in time.
///
/// A stored message has a position in the thread's append-only log; a message added or replaced
/// since has none. A checkpoint writes only those and refers to the others.
///
/// Updates are reduced by the channels of the state's agent: the lead's, unless
/// [`defined_by`](Self::defined_by) has set others. Values of other channels, which another agent
/// wrote, are unchanged by updates and are stored and serialized as well.
#[derive(Debug, Clone, Default)]
pub struct ThreadState {
    list: MessageList,
    /// Shared with checkpoints and clones until they are changed.
    channels: Arc<IndexMap<String, Value>>,
    histories: Histories,
    definition: Channels,
}

/// Messages and values decide; the definition of the channels is no part of the comparison.
impl PartialEq for ThreadState {
    fn eq(&self, other: &Self) -> bool {
        self.messages() == other.messages()
            && self.channels == other.channels
            && self.histories == other.histories
    }
}

impl ThreadState {
    /// Creates a state from stored data: every message with its position in the log, first those of
    /// the conversation, then those of the histories.
    pub fn restored(
        messages: impl IntoIterator<Item = (u64, Message)>,
        mut channels: IndexMap<String, Value>,
    ) -> Self {
        let lengths = Histories::take_lengths(&mut channels);
        let mut messages: Vec<(u64, Message)> = messages.into_iter().collect();
        let histories = Histories::split_off(&mut messages, &lengths);
        let (log_places, messages) = messages
            .into_iter()
            .map(|(position, message)| (Some(position), message))
            .unzip();
        Self {
            list: MessageList::new(messages, log_places),
            channels: Arc::new(channels),
            histories,
            definition: Channels::lead(),
        }
    }

    /// Returns the message lists apart from the conversation.
    pub fn histories(&self) -> &Histories {
        &self.histories
    }

    /// Returns the message lists apart from the conversation, to be changed.
    pub fn histories_mut(&mut self) -> &mut Histories {
        &mut self.histories
    }

    /// Replaces the values of all channels, without reducers.
    pub fn set_channels(&mut self, channels: IndexMap<String, Value>) {
        self.channels = Arc::new(channels);
    }

    /// Returns all channels that have a value, without a copy.
    pub fn shared_channels(&self) -> Arc<IndexMap<String, Value>> {
        self.channels.clone()
    }

    /// Sets the channels that updates may write, with their reducers. No value changes.
    #[must_use]
    pub fn defined_by(mut self, definition: Channels) -> Self {
        self.definition = definition;
        self
    }

    /// Returns the channels that updates may write.
    pub fn definition(&self) -> &Channels {
        &self.definition
    }

    /// Returns the messages in order.
    pub fn messages(&self) -> &[Message] {
        self.list.messages()
    }

    /// Returns each message's position in the thread's log; `None` for unstored ones.
    pub fn log_places(&self) -> &[Option<u64>] {
        self.list.places()
    }

    /// Sets the positions in the log of some messages, by index.
    pub fn add_log_places(&mut self, added: &[(usize, u64)]) {
        self.list.add_places(added);
    }

    /// Copies the log positions of `earlier`, a stored state of the same thread: an agent works on
    /// its own copy of the state, without the positions that were assigned in the meantime.
    pub fn keep_log_places(&mut self, earlier: &Self) {
        let unstored = self.log_places().iter().enumerate();
        let unstored: Vec<usize> = unstored
            .filter_map(|(at, position)| position.is_none().then_some(at))
            .collect();
        let positions = Positions::new(&earlier.list, unstored.len());
        let mut stored = Vec::new();
        for at in unstored {
            let message = &self.messages()[at];
            // In most cases no message was removed: then the ids at one index are equal, or the
            // earlier list is shorter.
            let existing = match earlier.messages().get(at) {
                Some(existing) if existing.id == message.id => Some(at),
                _ => message.id.as_deref().and_then(|id| positions.of(id)),
            };
            let position = existing
                .filter(|&existing| earlier.messages()[existing] == *message)
                .and_then(|existing| earlier.log_places()[existing]);
            stored.extend(position.map(|position| (at, position)));
        }
        self.list.add_places(&stored);
        self.histories.keep_log_places(&earlier.histories);
    }

    /// Filters `messages` by ids that no message of the state has.
    pub fn without_known<'a>(
        &'a self,
        messages: &'a [Message],
    ) -> impl Iterator<Item = &'a Message> {
        let positions = Positions::new(&self.list, messages.len());
        messages.iter().filter(move |message| {
            message
                .id
                .as_deref()
                .is_none_or(|id| positions.of(id).is_none())
        })
    }

    /// Replaces the content of the last message; its id is unchanged. No effect on an empty list.
    pub fn replace_last(&mut self, message: Message) {
        if let Some(last) = self.messages().len().checked_sub(1) {
            self.list.replace(last, message);
        }
    }

    /// Marks every message as unstored: the next checkpoint writes all of them to the log again.
    pub fn forget_log_places(&mut self) {
        self.list.forget_places();
    }

    /// Returns the value of a channel.
    pub fn channel(&self, name: &str) -> Option<&Value> {
        self.channels.get(name)
    }

    /// Returns all channels that have a value.
    pub fn channels(&self) -> &IndexMap<String, Value> {
        &self.channels
    }

    /// Returns the channels that have a value in the order of their serialization, which does not
    /// depend on the agent: first those of the lead agent, then the others by name.
    pub fn wire_channels(&self) -> impl Iterator<Item = (&str, &Value)> {
        let mut channels: Vec<(&str, &Value)> = self
            .channels
            .iter()
            .map(|(name, value)| (&**name, value))
            .collect();
        channels.sort_unstable_by_key(|(name, _)| wire_order(name));
        channels.into_iter()
    }

    /// Returns the thread's title, if it has a non-empty one.
    pub fn title(&self) -> Option<&str> {
        self.channel("title")
            .and_then(Value::as_str)
            .filter(|title| !title.is_empty())
    }

    /// Reduces one update. On an error the state is unchanged.
    pub fn apply(&mut self, update: StateUpdate, ids: &dyn IdSource) -> Result<(), StateError> {
        self.apply_within(update, usize::MAX, ids)
    }

    /// Reduces one update that must not make the list longer than `max_messages`. On an error the
    /// state is unchanged.
    pub fn apply_within(
        &mut self,
        update: StateUpdate,
        max_messages: usize,
        ids: &dyn IdSource,
    ) -> Result<(), StateError> {
        let StateUpdate { messages, channels } = update;
        let mut reduced = Vec::with_capacity(channels.len());
        for (name, value) in channels {
            let current = self.channels.get(&name);
            let value = Reduction::of(&name, &self.definition, current, value)?;
            reduced.push((name, value));
        }
        let changes = message_reducer::plan(&self.list, messages, ids)?;
        if changes.len() > max_messages.max(self.messages().len()) {
            return Err(StateError::TooManyMessages {
                count: changes.len(),
                limit: max_messages,
            });
        }
        if !reduced.is_empty() {
            let channels = Arc::make_mut(&mut self.channels);
            for (name, reduction) in reduced {
                // A written channel moves to the end of the map.
                let current = channels.shift_remove(&name);
                if let Some(value) = reduction.applied_to(current) {
                    channels.insert(name, value);
                }
            }
        }
        self.change_messages(changes);
        Ok(())
    }

    /// Reduces the updates of parallel tasks, in call order. On an error the state is unchanged.
    pub fn apply_parallel(
        &mut self,
        mut updates: Vec<StateUpdate>,
        ids: &dyn IdSource,
    ) -> Result<(), StateError> {
        if updates.len() <= 1 {
            return updates
                .pop()
                .map_or(Ok(()), |update| self.apply(update, ids));
        }
        let mut written: HashSet<&str> = HashSet::new();
        for name in updates.iter().flat_map(|update| update.channels.keys()) {
            if self.definition.reducer(name) == Some(Reducer::LastWrite) && !written.insert(name) {
                return Err(StateError::ParallelWrites(name.clone()));
            }
        }
        let removes = |update: &StateUpdate| {
            update
                .messages
                .iter()
                .any(|message| matches!(message.kind, MessageKind::Remove))
        };
        let joins = !updates.iter().any(removes);
        let mut next = self.clone();
        let mut messages = Vec::new();
        for mut update in updates {
            // Without removals the order of reduction has no visible effect, and one reduction
            // indexes the list once.
            if joins {
                messages.append(&mut update.messages);
            }
            next.apply(update, ids)?;
        }
        next.apply(StateUpdate::messages(messages), ids)?;
        *self = next;
        Ok(())
    }

    fn change_messages(&mut self, changes: MessageChanges) {
        let MessageChanges {
            clears,
            writes,
            removed,
            ..
        } = changes;
        if clears {
            self.list.clear();
        }
        for (at, message) in writes {
            match self.messages().get(at) {
                Some(existing) if *existing == message => {}
                Some(_) => self.list.replace(at, message),
                None => self.list.push(message),
            }
        }
        if !removed.is_empty() {
            self.list.retain(|at| !removed.contains(&at));
        }
    }
}

/// Wire form of a `values` frame. Messages contribute their cached JSON.
impl Serialize for ThreadState {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("messages", self.messages())?;
        for (name, value) in self.wire_channels() {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for ThreadState {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        /// Fields in serialized form.
        #[derive(Deserialize)]
        struct Fields {
            messages: Vec<Message>,
            #[serde(flatten)]
            channels: IndexMap<String, Value>,
        }
        let Fields { messages, channels } = Fields::deserialize(deserializer)?;
        Ok(Self {
            list: MessageList::unstored(messages),
            channels: Arc::new(channels),
            histories: Histories::default(),
            definition: Channels::lead(),
        })
    }
}

#[cfg(test)]
#[path = "thread_state_tests.rs"]
mod tests;
