//! Content of a checkpoint, and the pure functions between a state and its positions in the message
//! log.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::pending_task::PendingTask;
use super::source::CheckpointSource;
use deerflow_core::ids::{CheckpointId, RunId, ThreadId};
use deerflow_core::messages::Message;
use deerflow_core::state::ThreadState;

/// Messages `first..=last` of a thread's log, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogRange(pub u64, pub u64);

/// Metadata of a checkpoint, without the state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CheckpointMeta {
    /// Id of the checkpoint; greater as text than all earlier ones.
    pub checkpoint_id: CheckpointId,
    /// Id of the thread.
    pub thread_id: ThreadId,
    /// Checkpoint that it follows.
    pub parent_id: Option<CheckpointId>,
    /// Run that wrote it.
    pub run_id: Option<RunId>,
    /// Source of the checkpoint.
    pub source: CheckpointSource,
    /// Step: -1 for an input, then increasing by one.
    pub step: i64,
    /// Pending tasks; empty if the agent has completed.
    pub next: Vec<PendingTask>,
    /// State machine of the agent, for a later resume.
    pub machine: Option<Value>,
    /// Additional metadata, visible to clients.
    pub metadata: Map<String, Value>,
    /// Time of creation.
    pub created_at: DateTime<Utc>,
}

/// A checkpoint to be written: metadata, channels, layout of the messages, and the new messages.
#[derive(Debug, Clone)]
pub struct CheckpointWrite {
    /// Metadata of the checkpoint.
    pub meta: CheckpointMeta,
    /// Channel values, without `messages`.
    pub channels: Map<String, Value>,
    /// Message list as ranges of the log.
    pub layout: Vec<LogRange>,
    /// Messages that are appended to the log with this checkpoint, with their positions.
    pub new_messages: Vec<(u64, Message)>,
    /// `true` if the checkpoint already exists: then only its pending tasks and state machine are
    /// rewritten.
    pub amends: bool,
}

/// A checkpoint read from the store.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// Metadata of the checkpoint.
    pub meta: CheckpointMeta,
    /// State, every message with its position in the log.
    pub state: ThreadState,
    /// Greatest position used in the thread's log so far, by any checkpoint.
    pub log_tail: u64,
}

/// Number of ranges that a layout may have in addition to one per [`MESSAGES_PER_RANGE`] messages
/// before the log is compacted.
const MAX_RANGES: usize = 64;
/// Number of messages for which a layout may have one more range. The limit grows with the
/// messages, so compaction writes each message a bounded number of times.
const MESSAGES_PER_RANGE: usize = 8;

impl CheckpointWrite {
    /// Plans the write of `state`: new messages get the positions after `log_tail`, and the state
    /// is updated with them.
    ///
    /// A fragmented list, of more than 64 ranges plus one per eight messages, is written to the end
    /// of the log as a whole. The positions in older checkpoints do not change.
    pub fn plan(meta: CheckpointMeta, state: &mut ThreadState, log_tail: &mut u64) -> Self {
        if ranges_of(state.log_places()) > MAX_RANGES + state.messages().len() / MESSAGES_PER_RANGE
        {
            state.forget_log_places();
        }
        let mut new_messages = Vec::new();
        let mut positions = Vec::with_capacity(state.messages().len());
        for (message, position) in state.messages().iter().zip(state.log_places()) {
            let position = position.unwrap_or_else(|| {
                *log_tail += 1;
                new_messages.push((*log_tail, message.clone()));
                *log_tail
            });
            positions.push(position);
        }
        let layout = layout_of(&positions);
        state.set_log_places(positions);
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

    /// Merges this write with `earlier`, which was not written yet and is replaced: this write gets
    /// the parent and the messages of `earlier`. A write with the same checkpoint id already has
    /// the same parent.
    #[must_use]
    pub fn instead_of(mut self, earlier: Self) -> Self {
        self.meta.parent_id = earlier.meta.parent_id;
        self.new_messages.splice(0..0, earlier.new_messages);
        self.amends = earlier.amends;
        self
    }
}

/// Counts the runs of consecutive positions among the stored messages.
fn ranges_of(positions: &[Option<u64>]) -> usize {
    let mut stored = positions.iter().flatten();
    let Some(mut last) = stored.next() else {
        return 0;
    };
    let breaks = stored.filter(|position| std::mem::replace(&mut last, position) + 1 != **position);
    1 + breaks.count()
}

/// Groups positions into runs of consecutive ones, in list order.
pub fn layout_of(positions: &[u64]) -> Vec<LogRange> {
    let mut ranges: Vec<LogRange> = Vec::new();
    for &position in positions {
        match ranges.last_mut() {
            Some(LogRange(_, last)) if *last + 1 == position => *last = position,
            _ => ranges.push(LogRange(position, position)),
        }
    }
    ranges
}

/// Returns the positions that `layout` represents.
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
        fn layout_expands_to_its_positions(positions in proptest::collection::vec(0_u64..50, 0..60)) {
            prop_assert_eq!(expand(&layout_of(&positions)).collect::<Vec<_>>(), positions);
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

    /// Creates a state whose messages are at every `step`th position of the log.
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
    fn few_fragments_are_not_compacted() {
        let mut state = at_every(2, 70);
        let write = CheckpointWrite::plan(meta(), &mut state, &mut 140);
        assert_eq!((write.layout.len(), write.new_messages.len()), (70, 0));
    }

    #[test]
    fn an_append_only_conversation_is_one_range() {
        let positions: Vec<u64> = (1..=4_000).collect();
        assert_eq!(layout_of(&positions), vec![LogRange(1, 4_000)]);
    }
}
