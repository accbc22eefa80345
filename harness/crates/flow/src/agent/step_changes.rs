//! What the visits of a superstep changed so far.

use deerflow_core::messages::Message;
use deerflow_core::state::{Histories, StateUpdate};
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// Values and turns of a superstep that is not complete. The state of its checkpoint does not have
/// them, so an amended checkpoint has them with the scheduling state.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct StepChanges {
    /// Entries by channel and node.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    channels: IndexMap<String, Map<String, Value>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    turns: Vec<Turn>,
    #[serde(default, skip_serializing_if = "Value::is_null")]
    errors: Value,
}

/// Turn of a session.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Turn {
    agent: String,
    messages: [Message; 2],
    /// Messages of the session's history from this turn on.
    length: usize,
}

impl StepChanges {
    pub(super) fn is_empty(&self) -> bool {
        self.channels.is_empty() && self.turns.is_empty() && self.errors.is_null()
    }

    /// Adds entries of channels that merge by key.
    pub(super) fn add(&mut self, channels: Map<String, Value>) {
        for (channel, entries) in channels {
            if let Value::Object(entries) = entries {
                self.channels.entry(channel).or_default().extend(entries);
            }
        }
    }

    /// Adds the values to channels of a state that does not have them.
    pub(super) fn add_to(&self, channels: &mut Map<String, Value>) {
        for (channel, entries) in &self.channels {
            let channel = channels.entry(channel).or_insert_with(|| json!({}));
            if let Value::Object(present) = channel {
                present.extend(entries.clone());
            }
        }
        if !self.errors.is_null() {
            channels.insert("errors".to_owned(), self.errors.clone());
        }
    }

    pub(super) fn add_turn(&mut self, agent: &str, messages: [Message; 2], length: usize) {
        self.turns.push(Turn {
            agent: agent.to_owned(),
            messages,
            length,
        });
    }

    /// Replaces the errors of the run's nodes.
    pub(super) fn set_errors(&mut self, errors: Value) {
        self.errors = errors;
    }

    /// Converts the values to an update of the state.
    pub(super) fn take_update(&mut self) -> StateUpdate {
        let mut update = StateUpdate::default();
        for (channel, entries) in std::mem::take(&mut self.channels) {
            update = update.and(channel, entries.into());
        }
        if !self.errors.is_null() {
            update = update.and("errors", self.errors.take());
        }
        let length = |turn: &Turn| (turn.agent.clone(), json!({ "messages": turn.length }));
        let sessions: Map<String, Value> = self.turns.iter().map(length).collect();
        if !sessions.is_empty() {
            update = update.and("sessions", sessions.into());
        }
        update
    }

    /// Moves the turns into the histories.
    pub(super) fn take_turns(&mut self, histories: &mut Histories) {
        for turn in self.turns.drain(..) {
            histories.push(&turn.agent, turn.messages, turn.length);
        }
    }
}
