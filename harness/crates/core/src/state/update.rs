//! Update of a state by one step.

use indexmap::IndexMap;
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;

use crate::messages::Message;

/// Messages to add, replace or remove, and channel values to reduce.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct StateUpdate {
    /// Reduced by id into the message list.
    #[serde(default)]
    pub messages: Vec<Message>,
    /// Reduced by the reducer of each channel.
    #[serde(flatten)]
    pub channels: IndexMap<String, Value>,
}

impl StateUpdate {
    /// Creates an update that adds messages.
    pub fn messages(messages: impl IntoIterator<Item = Message>) -> Self {
        Self {
            messages: messages.into_iter().collect(),
            channels: IndexMap::new(),
        }
    }

    /// Creates an update of one channel.
    pub fn channel(name: impl Into<String>, value: Value) -> Self {
        Self::default().and(name, value)
    }

    /// Adds one channel to the update.
    #[must_use]
    pub fn and(mut self, name: impl Into<String>, value: Value) -> Self {
        self.channels.insert(name.into(), value);
        self
    }

    /// Reports whether the update contains no message and no channel value.
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty() && self.channels.is_empty()
    }
}

/// Wire form of an `updates` frame: `{"messages": [..], "title": ..}`, without `messages` if there
/// are none.
impl Serialize for StateUpdate {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        if !self.messages.is_empty() {
            map.serialize_entry("messages", &self.messages)?;
        }
        for (name, value) in &self.channels {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}
