//! Content of a checkpoint, and the pure functions between a state and its positions in the message
//! log.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use indexmap::IndexMap;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value, json};

use super::pending_task::PendingTask;
use super::source::CheckpointSource;
use deerflow_core::ids::{CheckpointId, RunId, ThreadId};
use deerflow_core::messages::Message;
use deerflow_core::state::{Histories, ThreadState};

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

impl CheckpointMeta {
    /// Key of `metadata` under which runs store the number of the attempt that wrote the checkpoint.
    pub const RUN_ATTEMPT: &'static str = "run_attempt";

    /// Returns the metadata that state and history expose: standard entries, then additional ones.
    pub fn public_metadata(&self) -> Map<String, Value> {
        let mut map = Map::new();
        map.insert("source".to_owned(), json!(self.source));
        map.insert("step".to_owned(), json!(self.step));
        map.insert("parents".to_owned(), json!({}));
        if let Some(run_id) = &self.run_id {
            map.insert("run_id".to_owned(), json!(run_id));
        }
        map.insert("thread_id".to_owned(), json!(self.thread_id));
        map.extend(self.metadata.clone());
        map
    }
}

/// A checkpoint to be written: metadata, channels, layout of the messages, and the new messages.
#[derive(Debug, Clone)]
pub struct CheckpointWrite {
    /// Metadata of the checkpoint.
    pub meta: CheckpointMeta,
    /// Channel values, without `messages`.
    pub channels: Arc<IndexMap<String, Value>>,
    /// Number of messages of each history; `None` without histories.
    pub histories: Option<Value>,
    /// Messages of the conversation as ranges of the log, then those of the histories.
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
        if is_fragmented(state.log_places().iter().copied()) {
            state.forget_log_places();
        }
        if is_fragmented(state.histories().log_places()) {
            state.histories_mut().forget_log_places();
        }
        let mut added = Vec::new();
        let positions = state.log_places().iter().enumerate();
        let positions = positions.map(|(at, position)| {
            position.unwrap_or_else(|| {
                *log_tail += 1;
                added.push((at, *log_tail));
                *log_tail
            })
        });
        let mut layout = layout_of(positions);
        let new_message = |&(at, position): &(usize, u64)| (position, state.messages()[at].clone());
        let mut new_messages: Vec<(u64, Message)> = added.iter().map(new_message).collect();
        state.add_log_places(&added);
        let positions = state.histories_mut().set_log_places(|message| {
            *log_tail += 1;
            new_messages.push((*log_tail, message.clone()));
            *log_tail
        });
        layout.extend(layout_of(positions));
        Self {
            meta,
            channels: state.shared_channels(),
            histories: state.histories().lengths(),
            layout,
            new_messages,
            amends: false,
        }
    }

    /// Returns the channels as a store has to keep them: with the lengths of the histories under
    /// [`Histories::KEY`].
    pub fn stored_channels(&self) -> StoredChannels<'_> {
        StoredChannels(self)
    }

    /// Merges this write with `earlier`, which was not written yet and is replaced: this write gets
    /// the messages of `earlier`, and the parent of a new checkpoint. A checkpoint that `earlier`
    /// amends is stored, so it remains the parent of a new one.
    #[must_use]
    pub fn instead_of(mut self, earlier: Self) -> Self {
        if self.meta.checkpoint_id == earlier.meta.checkpoint_id {
            self.amends = earlier.amends;
        } else if !earlier.amends {
            self.meta.parent_id = earlier.meta.parent_id;
        }
        self.new_messages.splice(0..0, earlier.new_messages);
        self
    }
}

/// Serialized form of the channels of a checkpoint.
#[derive(Debug)]
pub struct StoredChannels<'a>(&'a CheckpointWrite);

impl Serialize for StoredChannels<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let CheckpointWrite {
            channels,
            histories,
            ..
        } = self.0;
        let values = channels.iter().filter(|(name, _)| *name != Histories::KEY);
        let values = values.map(|(name, value)| (&**name, value));
        serializer.collect_map(values.chain(histories.iter().map(|of| (Histories::KEY, of))))
    }
}

/// Reports whether a list has more runs of consecutive positions than a layout may have.
fn is_fragmented(positions: impl Iterator<Item = Option<u64>>) -> bool {
    let (mut ranges, mut messages, mut last) = (0, 0, None);
    for position in positions {
        messages += 1;
        if let Some(position) = position {
            ranges += usize::from(last.is_none_or(|last: u64| last + 1 != position));
            last = Some(position);
        }
    }
    ranges > MAX_RANGES + messages / MESSAGES_PER_RANGE
}

/// Returns the ranges of the conversation in a stored layout, and removes the lengths of the
/// histories from the stored channels.
pub fn conversation_of(
    mut layout: Vec<LogRange>,
    channels: &mut IndexMap<String, Value>,
) -> Vec<LogRange> {
    let lengths = Histories::take_lengths(channels).into_iter();
    let mut rest = lengths.fold(0_u64, |total, (_, length)| {
        total.saturating_add(u64::try_from(length).unwrap_or(u64::MAX))
    });
    while rest > 0
        && let Some(LogRange(first, last)) = layout.last_mut()
    {
        let messages = last.saturating_sub(*first).saturating_add(1);
        if messages > rest {
            *last -= rest;
            break;
        }
        rest -= messages;
        layout.pop();
    }
    layout
}

/// Groups positions into runs of consecutive ones, in list order.
pub fn layout_of(positions: impl IntoIterator<Item = u64>) -> Vec<LogRange> {
    let mut ranges: Vec<LogRange> = Vec::new();
    for position in positions {
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
#[path = "snapshot_tests.rs"]
mod tests;
