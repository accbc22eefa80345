//! What a checkpoint says, and the pure functions between a state and its place in the message log.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::NestedState;
use crate::ids::{CheckpointId, RunId, ThreadId};
use crate::messages::Message;
use crate::state::ThreadState;

/// Messages `first..=last` of a thread's log, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogRange(pub u64, pub u64);

/// What made a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CheckpointSource {
    /// A run's input.
    Input,
    /// A step of a run.
    Loop,
    /// A change from outside a run.
    Update,
    /// A copy of an older checkpoint.
    Fork,
}

/// A node that is due, and what it waits for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PendingTask {
    /// Stable while the task is due.
    pub id: String,
    /// The node.
    pub name: String,
    /// Questions to a person, as `[{"value": .., "id": ..}]`.
    #[serde(default)]
    pub interrupts: Vec<Value>,
    /// Why the node did not finish, when it was tried.
    #[serde(default)]
    pub error: Option<String>,
    /// The agent that its call has set to work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nested: Option<Arc<NestedState>>,
}

/// The name of a node that is due.
pub type PendingNode = String;

/// Facts about a checkpoint besides the state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CheckpointMeta {
    /// Its id; greater as text than all before it.
    pub checkpoint_id: CheckpointId,
    /// The thread.
    pub thread_id: ThreadId,
    /// The checkpoint it follows.
    pub parent_id: Option<CheckpointId>,
    /// The run that wrote it.
    pub run_id: Option<RunId>,
    /// What made it.
    pub source: CheckpointSource,
    /// -1 for an input, then counting.
    pub step: i64,
    /// Nodes that are due; empty when the agent is done.
    pub next: Vec<PendingTask>,
    /// Where the agent's own machine stands, for a later resume.
    pub machine: Option<Value>,
    /// Free metadata shown to clients.
    pub metadata: Map<String, Value>,
    /// When.
    pub created_at: DateTime<Utc>,
}

/// A checkpoint to be written: facts, channels, where the messages stand, and those that are new.
#[derive(Debug, Clone)]
pub struct CheckpointWrite {
    /// Facts.
    pub meta: CheckpointMeta,
    /// Channel values, `messages` left out.
    pub channels: Map<String, Value>,
    /// The message list as ranges of the log.
    pub layout: Vec<LogRange>,
    /// Messages that join the log with this checkpoint, with their places.
    pub new_messages: Vec<(u64, Message)>,
    /// Whether the checkpoint is there already: then only what is due there, and the machine, are written anew.
    pub amends: bool,
}

/// A checkpoint as it was read.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// Facts.
    pub meta: CheckpointMeta,
    /// The state, every message with its place.
    pub state: ThreadState,
    /// The greatest place used in the thread's log so far, by any checkpoint.
    pub log_tail: u64,
}

impl CheckpointWrite {
    /// Plans the write of `state`: new messages get the places after `log_tail`, and the state learns them.
    pub fn plan(meta: CheckpointMeta, state: &mut ThreadState, log_tail: &mut u64) -> Self {
        let mut new_messages = Vec::new();
        let mut places = Vec::with_capacity(state.messages().len());
        for (message, place) in state.messages().iter().zip(state.log_places()) {
            let place = place.unwrap_or_else(|| {
                *log_tail += 1;
                new_messages.push((*log_tail, message.clone()));
                *log_tail
            });
            places.push(place);
        }
        let layout = layout_of(&places);
        state.set_log_places(places);
        let channels = state.channels().iter().map(|(name, value)| (name.clone(), value.clone())).collect();
        Self { meta, channels, layout, new_messages, amends: false }
    }

    /// The write that makes `earlier` needless: it follows what that one followed, and brings its messages along. One of the
    /// same id has the same place in the history already.
    #[must_use]
    pub fn instead_of(mut self, earlier: Self) -> Self {
        self.meta.parent_id = earlier.meta.parent_id;
        self.new_messages.splice(0..0, earlier.new_messages);
        self.amends = earlier.amends;
        self
    }
}

/// Runs of consecutive places, in list order.
pub fn layout_of(places: &[u64]) -> Vec<LogRange> {
    let mut ranges: Vec<LogRange> = Vec::new();
    for &place in places {
        match ranges.last_mut() {
            Some(LogRange(_, last)) if *last + 1 == place => *last = place,
            _ => ranges.push(LogRange(place, place)),
        }
    }
    ranges
}

/// The places that `layout` stands for.
pub fn expand(layout: &[LogRange]) -> impl Iterator<Item = u64> + '_ {
    layout.iter().flat_map(|LogRange(first, last)| *first..=*last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_layout_expands_to_the_places_it_was_made_of(places in proptest::collection::vec(0_u64..50, 0..60)) {
            prop_assert_eq!(expand(&layout_of(&places)).collect::<Vec<_>>(), places);
        }
    }

    #[test]
    fn an_append_only_conversation_is_one_range() {
        let places: Vec<u64> = (1..=4_000).collect();
        assert_eq!(layout_of(&places), vec![LogRange(1, 4_000)]);
    }
}
