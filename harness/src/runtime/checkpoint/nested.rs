//! The state of an agent inside a call: kept with the task that makes the call, in the checkpoint at which that task is due.

use std::collections::HashMap;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{CheckpointMeta, CheckpointSource, PendingTask, Snapshot};
use crate::ids::{CheckpointId, ThreadId};
use crate::state::ThreadState;

/// Parts the namespaces of agents inside of each other.
const PARTED: char = '|';

/// The newest state of an agent inside a call. It has a history while it works, of which only this is kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NestedState {
    /// Greater as text than all before it.
    pub checkpoint_id: CheckpointId,
    /// The checkpoint it followed.
    pub parent_id: Option<CheckpointId>,
    /// What made it.
    pub source: CheckpointSource,
    /// -1 for the input, then counting.
    pub step: i64,
    /// Nodes that are due, which may have agents inside in their turn; empty when the agent is done.
    pub next: Vec<PendingTask>,
    /// Where the agent's machine stands, and what the call keeps of it.
    pub machine: Option<Value>,
    /// The state.
    pub state: Arc<ThreadState>,
    /// When.
    pub created_at: DateTime<Utc>,
}

/// States of agents inside of calls, by the ids of the tasks that make the calls.
pub type NestedStates = HashMap<String, Arc<NestedState>>;

impl NestedState {
    /// The facts as they would be of a checkpoint of its own, inside of one with `outer` facts.
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

    /// The same with the state.
    pub fn snapshot(&self, outer: &CheckpointMeta) -> Snapshot {
        Snapshot {
            meta: self.meta(outer),
            state: ThreadState::clone(&self.state),
            log_tail: 0,
        }
    }
}

impl PendingTask {
    /// A task that nobody has worked at.
    pub fn new(id: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            name: name.into(),
            interrupts: Vec::new(),
            error: None,
            nested: None,
        }
    }

    /// `node:task id`.
    pub fn namespace(&self) -> String {
        format!("{}:{}", self.name, self.id)
    }

    /// Lets tasks that are still due keep the agents inside of them.
    pub fn carry_over(next: &mut [Self], before: &[Self]) {
        for held in before.iter().filter(|held| held.nested.is_some()) {
            if let Some(task) = next
                .iter_mut()
                .find(|task| task.id == held.id && task.nested.is_none())
            {
                task.nested.clone_from(&held.nested);
            }
        }
    }

    /// The agents inside of these tasks.
    pub fn nested_states(next: &[Self]) -> NestedStates {
        next.iter()
            .filter_map(|task| Some((task.id.clone(), task.nested.clone()?)))
            .collect()
    }
}

/// Where a checkpoint stands: at the thread itself, or inside of calls.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CheckpointPlace {
    /// Empty for the thread's own; else the namespaces of the calls, from outside in.
    pub namespace: String,
    /// The checkpoints it is inside of, with their namespaces, from outside in.
    pub above: Vec<(String, CheckpointId)>,
}

impl CheckpointPlace {
    /// The place inside of a task that is due at the checkpoint `at` of this place.
    pub fn inside(&self, at: &CheckpointId, task: &str) -> Self {
        let held = (self.namespace.clone(), at.clone());
        Self {
            namespace: within(&self.namespace, task),
            above: self.above.iter().cloned().chain([held]).collect(),
        }
    }

    /// The ids of the checkpoints it is inside of, by namespace.
    pub fn parents(&self) -> Map<String, Value> {
        self.above
            .iter()
            .map(|(namespace, id)| (namespace.clone(), json!(id)))
            .collect()
    }

    /// How clients name a checkpoint here; without an id, whichever is the newest.
    pub fn reference(&self, thread: &ThreadId, id: Option<&CheckpointId>) -> Map<String, Value> {
        let mut fields = Map::new();
        fields.insert("checkpoint_id".to_owned(), json!(id));
        fields.insert("thread_id".to_owned(), json!(thread));
        fields.insert("checkpoint_ns".to_owned(), json!(self.namespace));
        fields.extend(self.map(id).map(|map| ("checkpoint_map".to_owned(), map)));
        fields
    }

    /// The ids from outside in, down to the checkpoint's own; none for the thread's own, which is inside of nothing.
    pub fn map(&self, id: Option<&CheckpointId>) -> Option<Value> {
        let id = id.filter(|_| !self.above.is_empty())?;
        let mut map = self.parents();
        map.insert(self.namespace.clone(), json!(id));
        Some(map.into())
    }
}

/// A namespace inside of another.
pub fn within(outer: &str, inner: &str) -> String {
    if outer.is_empty() {
        inner.to_owned()
    } else {
        format!("{outer}{PARTED}{inner}")
    }
}

/// The agent that a namespace names, inside of a checkpoint with these facts, with its place.
pub fn nested_at(outer: &CheckpointMeta, namespace: &str) -> Option<(Snapshot, CheckpointPlace)> {
    let mut place = CheckpointPlace::default();
    let mut found: Option<Arc<NestedState>> = None;
    for part in namespace.split(PARTED) {
        let (next, at) = found
            .as_ref()
            .map_or((&outer.next, &outer.checkpoint_id), |held| {
                (&held.next, &held.checkpoint_id)
            });
        let task = next.iter().find(|task| task.namespace() == part)?;
        place = place.inside(at, part);
        found = Some(task.nested.clone()?);
    }
    found.map(|held| (held.snapshot(outer), place))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages::Message;

    fn id(n: u8) -> CheckpointId {
        CheckpointId::parse(format!("c{n}")).unwrap()
    }

    fn holding(name: &str, n: u8, next: Vec<PendingTask>) -> PendingTask {
        let state = ThreadState::restored([(1, Message::human(name))], Default::default());
        let nested = NestedState {
            checkpoint_id: id(n),
            parent_id: None,
            source: CheckpointSource::Loop,
            step: 1,
            next,
            machine: Some(json!({ "at": "tools" })),
            state: Arc::new(state),
            created_at: DateTime::UNIX_EPOCH,
        };
        PendingTask {
            nested: Some(Arc::new(nested)),
            ..PendingTask::new(name, "tools")
        }
    }

    #[test]
    fn an_agent_is_found_by_its_namespace_however_deep_it_is() {
        let outer = CheckpointMeta {
            checkpoint_id: id(1),
            thread_id: ThreadId::parse("t").unwrap(),
            parent_id: None,
            run_id: None,
            source: CheckpointSource::Loop,
            step: 1,
            next: vec![
                PendingTask::new("x", "tools"),
                holding("a", 2, vec![holding("b", 3, vec![])]),
            ],
            machine: None,
            metadata: Map::new(),
            created_at: DateTime::UNIX_EPOCH,
        };
        let (snapshot, place) = nested_at(&outer, "tools:a|tools:b").unwrap();
        assert_eq!(
            (
                snapshot.meta.checkpoint_id,
                snapshot.state.messages()[0].content.text()
            ),
            (id(3), "b".to_owned())
        );
        assert_eq!(
            place.parents(),
            Map::from_iter([
                (String::new(), json!("c1")),
                ("tools:a".to_owned(), json!("c2"))
            ])
        );
        assert_eq!(
            nested_at(&outer, "tools:a").unwrap().1.map(Some(&id(2))),
            Some(json!({ "": "c1", "tools:a": "c2" }))
        );
        for stranger in [
            "",
            "tools:x",
            "tools:b",
            "tools:a|",
            "tools:a|tools:a",
            "|tools:a",
        ] {
            assert!(nested_at(&outer, stranger).is_none(), "{stranger}");
        }
    }

    #[test]
    fn a_task_comes_back_from_its_json_with_the_agent_inside() {
        let task = holding("a", 2, vec![holding("b", 3, vec![])]);
        let read: PendingTask = serde_json::from_value(json!(task)).unwrap();
        assert_eq!(read, task);
        assert!(
            json!(PendingTask::new("x", "tools"))
                .get("nested")
                .is_none()
        );
    }

    #[test]
    fn only_tasks_that_stay_due_keep_the_agents_inside() {
        let before = [holding("a", 2, vec![]), holding("b", 3, vec![])];
        let mut next = vec![
            PendingTask::new("b", "tools"),
            PendingTask::new("c", "tools"),
        ];
        PendingTask::carry_over(&mut next, &before);
        assert_eq!(
            next.iter()
                .map(|task| task.nested.is_some())
                .collect::<Vec<_>>(),
            [true, false]
        );
    }
}
