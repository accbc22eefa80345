//! State of an agent inside a call: stored with the task that makes the call, in the checkpoint at
//! which that task is pending.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::pending_task::NestedState;
use super::snapshot::{CheckpointMeta, Snapshot};
use deerflow_core::ids::{CheckpointId, ThreadId};
use deerflow_core::state::ThreadState;

/// Separates the namespaces of nested agents.
const SEPARATOR: char = '|';

impl NestedState {
    /// Converts this state to the metadata of a checkpoint nested in the one with `outer` metadata.
    pub fn meta(&self, outer: &CheckpointMeta) -> CheckpointMeta {
        CheckpointMeta {
            checkpoint_id: self.checkpoint_id.clone(),
            thread_id: outer.thread_id.clone(),
            parent_id: self.parent_id.clone(),
            run_id: outer.run_id.clone(),
            source: self.source,
            step: self.step,
            next: self.next.clone(),
            machine: self.machine.clone(),
            metadata: outer.metadata.clone(),
            created_at: self.created_at,
        }
    }

    /// Converts this state to a snapshot nested in the checkpoint with `outer` metadata.
    pub fn snapshot(&self, outer: &CheckpointMeta) -> Snapshot {
        Snapshot {
            meta: self.meta(outer),
            state: ThreadState::clone(&self.state),
            log_tail: 0,
        }
    }
}

/// Path of a checkpoint: directly in the thread, or inside nested calls.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CheckpointPath {
    /// Namespaces of the calls from outermost to innermost; empty for a checkpoint of the thread
    /// itself.
    pub namespace: String,
    /// Enclosing checkpoints with their namespaces, from outermost to innermost.
    pub above: Vec<(String, CheckpointId)>,
}

impl CheckpointPath {
    /// Returns the path inside a task that is pending at the checkpoint `at` of this path.
    pub fn inside(&self, at: &CheckpointId, task: &str) -> Self {
        let earlier = (self.namespace.clone(), at.clone());
        Self {
            namespace: within(&self.namespace, task),
            above: self.above.iter().cloned().chain([earlier]).collect(),
        }
    }

    /// Returns the ids of the enclosing checkpoints by namespace.
    pub fn parents(&self) -> Map<String, Value> {
        self.above
            .iter()
            .map(|(namespace, id)| (namespace.clone(), json!(id)))
            .collect()
    }

    /// Returns the reference by which clients name a checkpoint at this path; without an id, the
    /// newest one.
    pub fn reference(&self, thread: &ThreadId, id: Option<&CheckpointId>) -> Map<String, Value> {
        let mut fields = Map::new();
        fields.insert("checkpoint_id".to_owned(), json!(id));
        fields.insert("thread_id".to_owned(), json!(thread));
        fields.insert("checkpoint_ns".to_owned(), json!(self.namespace));
        fields.extend(self.map(id).map(|map| ("checkpoint_map".to_owned(), map)));
        fields
    }

    /// Returns the ids of the enclosing checkpoints from outermost to innermost, and `id` as the
    /// last one. `None` if the path is not nested or `id` is `None`.
    pub fn map(&self, id: Option<&CheckpointId>) -> Option<Value> {
        let id = id.filter(|_| !self.above.is_empty())?;
        let mut map = self.parents();
        map.insert(self.namespace.clone(), json!(id));
        Some(map.into())
    }
}

/// Joins a namespace with the one inside it.
pub fn within(outer: &str, inner: &str) -> String {
    if outer.is_empty() {
        inner.to_owned()
    } else {
        format!("{outer}{SEPARATOR}{inner}")
    }
}

/// Finds the nested agent that a namespace names, inside a checkpoint with this metadata, and its
/// path.
pub fn nested_at(outer: &CheckpointMeta, namespace: &str) -> Option<(Snapshot, CheckpointPath)> {
    let mut path = CheckpointPath::default();
    let mut nested_state: Option<Arc<NestedState>> = None;
    for part in namespace.split(SEPARATOR) {
        let (next, at) = nested_state
            .as_ref()
            .map_or((&outer.next, &outer.checkpoint_id), |nested| {
                (&nested.next, &nested.checkpoint_id)
            });
        let task = next.iter().find(|task| task.namespace() == part)?;
        path = path.inside(at, part);
        nested_state = Some(task.nested.clone()?);
    }
    nested_state.map(|nested| (nested.snapshot(outer), path))
}

#[cfg(test)]
#[path = "nested_tests.rs"]
mod tests;
