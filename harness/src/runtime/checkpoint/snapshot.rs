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

/// The ranges that a layout may have besides one for each [`MESSAGES_PER_RANGE`] messages, before the log is compacted.
const MAX_RANGES: usize = 64;
/// Ranges grow in proportion to messages until the log is compacted, so compaction writes each message a bounded number of times.
const MESSAGES_PER_RANGE: usize = 8;

impl CheckpointWrite {
    /// Plans the write of `state`: new messages get the places after `log_tail`, and the state learns them.
    ///
    /// A fragmented list, of more ranges than 64 and one for each eight messages, is written to the end of the log as a whole.
    /// Older checkpoints keep the places they name.
    pub fn plan(meta: CheckpointMeta, state: &mut ThreadState, log_tail: &mut u64) -> Self {
        if ranges_of(state.log_places()) > MAX_RANGES + state.messages().len() / MESSAGES_PER_RANGE
        {
            state.forget_log_places();
        }
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
        let channels = state
            .channels()
            .iter()
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        Self {
            meta,
            channels,
            layout,
            new_messages,
            amends: false,
        }
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

/// Counts the runs of consecutive places among the messages that are stored.
fn ranges_of(places: &[Option<u64>]) -> usize {
    let mut stored = places.iter().flatten();
    let Some(mut last) = stored.next() else {
        return 0;
    };
    let breaks = stored.filter(|place| std::mem::replace(&mut last, place) + 1 != **place);
    1 + breaks.count()
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
    layout
        .iter()
        .flat_map(|LogRange(first, last)| *first..=*last)
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

    fn meta() -> CheckpointMeta {
        CheckpointMeta {
            checkpoint_id: CheckpointId::parse("c1").unwrap(),
            thread_id: ThreadId::parse("t").unwrap(),
            parent_id: None,
            run_id: None,
            source: CheckpointSource::Loop,
            step: 1,
            next: vec![],
            machine: None,
            metadata: Map::new(),
            created_at: DateTime::UNIX_EPOCH,
        }
    }

    /// A list of messages at every `step`th place of the log.
    fn at_every(step: u64, count: u64) -> ThreadState {
        ThreadState::restored(
            (0..count).map(|n| (1 + step * n, Message::human(n.to_string()))),
            Default::default(),
        )
    }

    #[test]
    fn a_fragmented_log_is_compacted_by_the_next_write() {
        let mut state = at_every(2, 200);
        let mut log_tail = 400;
        let write = CheckpointWrite::plan(meta(), &mut state, &mut log_tail);
        assert_eq!(
            (write.layout, write.new_messages.len(), log_tail),
            (vec![LogRange(401, 600)], 200, 600)
        );
        let again = CheckpointWrite::plan(meta(), &mut state, &mut log_tail);
        assert_eq!(
            (again.layout, again.new_messages.len(), log_tail),
            (vec![LogRange(401, 600)], 0, 600)
        );
    }

    #[test]
    fn few_fragments_stay_where_they_are() {
        let mut state = at_every(2, 70);
        let write = CheckpointWrite::plan(meta(), &mut state, &mut 140);
        assert_eq!((write.layout.len(), write.new_messages.len()), (70, 0));
    }

    #[test]
    fn an_append_only_conversation_is_one_range() {
        let places: Vec<u64> = (1..=4_000).collect();
        assert_eq!(layout_of(&places), vec![LogRange(1, 4_000)]);
    }
}
