//! JSON of checkpoints as state and history.

use std::collections::{HashMap, VecDeque};

use harness::clock::iso;
use harness::ids::{CheckpointId, ThreadId};
use harness::runtime::actor_context::effective_user_id;
use harness::runtime::agent::path_of;
use harness::runtime::checkpoint::{CheckpointMeta, CheckpointPath, PendingTask, Snapshot};
use serde_json::{Map, Value, json};

use crate::dialect::Dialect;

/// Returns all channel values, with `messages` as its messages.
pub fn values_json(snapshot: &Snapshot, messages: Vec<Value>) -> Map<String, Value> {
    let mut values = Map::from_iter([("messages".to_owned(), Value::Array(messages))]);
    values.extend(
        snapshot
            .state
            .channels()
            .iter()
            .map(|(name, value)| (name.clone(), value.clone())),
    );
    values
}

/// Returns the platform's reference to a checkpoint of a thread.
pub fn checkpoint_json(thread: &ThreadId, id: &CheckpointId) -> Value {
    CheckpointPath::default().reference(thread, Some(id)).into()
}

/// Options of a state's JSON.
#[derive(Debug, Clone)]
pub struct StateView {
    /// Dialect of the client.
    pub dialect: Dialect,
    /// Path of the checkpoint.
    pub path: CheckpointPath,
    /// `true` if the states of nested agents in pending calls are included, not only their
    /// references.
    pub subgraphs: bool,
}

impl StateView {
    /// View of a thread's own state.
    pub fn of(dialect: Dialect) -> Self {
        Self {
            dialect,
            path: CheckpointPath::default(),
            subgraphs: false,
        }
    }
}

/// Returns the state at a checkpoint. The results of its pending tasks are taken from `successor`,
/// the next checkpoint.
pub fn state_json(
    snapshot: &Snapshot,
    values: Map<String, Value>,
    successor: Option<&Snapshot>,
    view: &StateView,
) -> Value {
    let meta = &snapshot.meta;
    let parent = meta.parent_id.as_ref();
    let interrupts: Vec<&Value> = meta.next.iter().flat_map(|task| &task.interrupts).collect();
    let named = |id| view.path.reference(&meta.thread_id, Some(id));
    let mut checkpoint = named(&meta.checkpoint_id);
    if view.dialect == Dialect::DeerFlow {
        checkpoint.insert("id".to_owned(), meta.checkpoint_id.to_string().into());
        checkpoint.insert("ts".to_owned(), iso(meta.created_at).into());
    }
    let mut json = json!({
        "values": null,
        "next": task_names(&meta.next),
        "tasks": tasks_json(snapshot, successor, view),
        "metadata": metadata_json(meta, view),
        "created_at": iso(meta.created_at),
        "checkpoint": checkpoint,
        "parent_checkpoint": parent.map(named),
        "interrupts": interrupts,
        "checkpoint_id": meta.checkpoint_id,
        "parent_checkpoint_id": parent,
    });
    // The macro would copy them.
    json["values"] = Value::Object(values);
    json
}

/// Returns the state of a thread without the requested checkpoint, or without any.
pub fn empty_state_json(
    thread: &ThreadId,
    requested: Option<&CheckpointId>,
    dialect: Dialect,
) -> Value {
    let values = if dialect.is_platform() {
        json!({})
    } else {
        json!({ "messages": [] })
    };
    json!({
        "values": values,
        "next": [],
        "tasks": [],
        "metadata": if dialect.is_platform() { Value::Null } else { json!({}) },
        "created_at": null,
        "checkpoint": requested.map(|id| json!({ "checkpoint_id": id, "thread_id": thread })),
        "parent_checkpoint": null,
        "interrupts": [],
        "checkpoint_id": requested,
        "parent_checkpoint_id": null,
    })
}

/// Returns an entry of DeerFlow's history. It deliberately has no `checkpoint` object: `useStream`
/// would send it back with every submit, and every message would fork an old state.
pub fn history_entry_json(meta: &CheckpointMeta, values: Value) -> Value {
    let mut metadata = meta.metadata.clone();
    metadata.shift_remove(CheckpointMeta::RUN_ATTEMPT);
    metadata.insert("step".to_owned(), meta.step.into());
    json!({
        "checkpoint_id": meta.checkpoint_id,
        "parent_checkpoint_id": meta.parent_id,
        "metadata": metadata,
        "values": values,
        "created_at": iso(meta.created_at),
        "next": task_names(&meta.next),
    })
}

fn task_names(next: &[PendingTask]) -> Vec<&str> {
    next.iter().map(|task| task.name.as_str()).collect()
}

/// Returns the pending tasks; the calls of one answer are distinguished by their index.
fn tasks_json(snapshot: &Snapshot, successor: Option<&Snapshot>, view: &StateView) -> Vec<Value> {
    let next = &snapshot.meta.next;
    let mut results = successor
        .map(|successor| results(snapshot, successor, next.len()))
        .unwrap_or_default()
        .into_iter();
    let json = |(at, task): (usize, &PendingTask)| {
        let (checkpoint, state) = inside(&snapshot.meta, task, view);
        task_json(
            task,
            (task.name == "tools").then_some(at),
            results.next(),
            checkpoint,
            state,
        )
    };
    next.iter().enumerate().map(json).collect()
}

/// Returns the results of the tasks: the new messages of the successor, one for each but the last,
/// and its new values.
fn results(before: &Snapshot, after: &Snapshot, tasks: usize) -> Vec<Value> {
    let previous: HashMap<_, _> = before
        .state
        .messages()
        .iter()
        .map(|message| (&message.id, message))
        .collect();
    let new = after
        .state
        .messages()
        .iter()
        .filter(|message| previous.get(&message.id) != Some(message));
    let mut new: VecDeque<Value> = new.map(|message| json!(message.json())).collect();
    let changed = after
        .state
        .channels()
        .iter()
        .filter(|(name, value)| before.state.channel(name) != Some(*value));
    let mut channels: Map<String, Value> = changed
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    let result = |at: usize| {
        let mine: Vec<Value> = if at + 1 < tasks {
            new.pop_front().into_iter().collect()
        } else {
            new.drain(..).collect()
        };
        let messages = (!mine.is_empty()).then(|| ("messages".to_owned(), Value::Array(mine)));
        let rest = if at == 0 {
            std::mem::take(&mut channels)
        } else {
            Map::new()
        };
        Value::Object(messages.into_iter().chain(rest).collect())
    };
    (0..tasks).map(result).collect()
}

/// Returns the nested agent of a task: its reference, or its state.
fn inside(
    meta: &CheckpointMeta,
    task: &PendingTask,
    view: &StateView,
) -> (Option<Value>, Option<Value>) {
    let Some(nested) = task.nested.as_ref().filter(|_| view.dialect.is_platform()) else {
        return (None, None);
    };
    let path = view.path.inside(&meta.checkpoint_id, &task.namespace());
    if !view.subgraphs {
        return (Some(path.reference(&meta.thread_id, None).into()), None);
    }
    let (snapshot, view) = (
        nested.snapshot(meta),
        StateView {
            path,
            ..view.clone()
        },
    );
    let messages = snapshot
        .state
        .messages()
        .iter()
        .map(|message| json!(message.json()))
        .collect();
    (
        None,
        Some(state_json(
            &snapshot,
            values_json(&snapshot, messages),
            None,
            &view,
        )),
    )
}

fn task_json(
    task: &PendingTask,
    call: Option<usize>,
    result: Option<Value>,
    checkpoint: Option<Value>,
    state: Option<Value>,
) -> Value {
    json!({
        "id": task.id,
        "name": task.name,
        "path": path_of(&task.name, call),
        "error": task.error,
        "interrupts": task.interrupts,
        "checkpoint": checkpoint,
        "state": state,
        "result": result,
    })
}

/// Returns the metadata of a checkpoint. On the platform, that of a run's checkpoint also has its
/// attempt, its host and its user, who is the reader.
fn metadata_json(meta: &CheckpointMeta, view: &StateView) -> Value {
    let mut metadata = meta.metadata.clone();
    if view.dialect.is_platform() && meta.run_id.is_some() {
        let user = Value::from(effective_user_id());
        metadata.insert("langgraph_host".to_owned(), "self-hosted".into());
        metadata.insert("langgraph_auth_user_id".to_owned(), user.clone());
        metadata.entry("user_id").or_insert(user);
    } else {
        metadata.shift_remove(CheckpointMeta::RUN_ATTEMPT);
    }
    let (step, parents) = (meta.step, view.path.parents());
    let facts = json!({ "source": meta.source, "step": step, "parents": parents, "thread_id": meta.thread_id, "run_id": meta.run_id });
    if let Value::Object(facts) = facts {
        metadata.extend(facts);
    }
    metadata.into()
}
