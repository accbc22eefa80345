//! Frames of checkpoints and tasks for viewers of `checkpoints`, `tasks` and `debug`.

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::frames::Frame;
use super::run_facts::RunFacts;
use super::values::{input_raw, interrupts, values_raw};
use crate::agent::{Task, TaskEnd, TaskInput};
use crate::checkpoint::{CheckpointMeta, CheckpointPath, PendingTask, within};
use deerflow_core::clock::iso;
use deerflow_core::ids::CheckpointId;
use deerflow_core::state::{StateUpdate, ThreadState};

/// Content of a checkpoint for `checkpoints` viewers. The run's configuration is left out, because
/// it may contain secrets.
#[derive(Debug)]
pub struct CheckpointView<'a> {
    /// Metadata of the checkpoint.
    pub meta: &'a CheckpointMeta,
    /// State of the checkpoint.
    pub state: &'a ThreadState,
    /// Path of the checkpoint.
    pub place: &'a CheckpointPath,
}

/// Wire form of a checkpoint.
#[derive(Debug, Clone, Serialize)]
pub(super) struct CheckpointFrame {
    config: Value,
    parent_config: Option<Value>,
    values: Box<RawValue>,
    metadata: Value,
    next: Vec<String>,
    tasks: Vec<Value>,
    /// Present in `debug` frames only.
    #[serde(skip_serializing_if = "Option::is_none")]
    checkpoint: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent_checkpoint: Option<Option<Value>>,
}

impl CheckpointFrame {
    pub(super) fn of(view: &CheckpointView<'_>) -> Self {
        let CheckpointView { meta, place, .. } = *view;
        let inside = |task: &PendingTask| {
            let namespace = within(&place.namespace, &task.namespace());
            json!({ "configurable": { "thread_id": meta.thread_id, "checkpoint_ns": namespace } })
        };
        let task = |task: &PendingTask| {
            let state = task.nested.as_ref().map(|_| inside(task));
            json!({ "id": task.id, "name": task.name, "interrupts": interrupts(&task.interrupts), "state": state })
        };
        Self {
            config: config(meta, &meta.checkpoint_id, place),
            parent_config: meta.parent_id.as_ref().map(|id| config(meta, id, place)),
            values: values_raw(view.state),
            metadata: json!({ "source": meta.source, "step": meta.step, "parents": place.parents() }),
            next: meta.next.iter().map(|task| task.name.clone()).collect(),
            tasks: meta.next.iter().map(task).collect(),
            checkpoint: None,
            parent_checkpoint: None,
        }
    }

    pub(super) fn debug(self, view: &CheckpointView<'_>) -> Self {
        let meta = view.meta;
        let named =
            |id: &CheckpointId| Value::Object(view.place.reference(&meta.thread_id, Some(id)));
        Self {
            checkpoint: Some(named(&meta.checkpoint_id)),
            parent_checkpoint: Some(meta.parent_id.as_ref().map(named)),
            ..self
        }
    }
}

fn config(meta: &CheckpointMeta, id: &CheckpointId, place: &CheckpointPath) -> Value {
    let mut configurable = Map::from_iter([("checkpoint_ns".to_owned(), json!(place.namespace))]);
    if let Some(run) = &meta.run_id {
        configurable.insert("run_id".to_owned(), json!(run));
    }
    configurable.insert("thread_id".to_owned(), json!(meta.thread_id));
    for key in ["graph_id", "assistant_id"] {
        configurable.extend(
            meta.metadata
                .get(key)
                .map(|value| (key.to_owned(), value.clone())),
        );
    }
    configurable.extend(
        place
            .map(Some(id))
            .map(|map| ("checkpoint_map".to_owned(), map)),
    );
    configurable.insert("checkpoint_id".to_owned(), json!(id));
    json!({ "configurable": configurable })
}

/// Wire form of the start of a task.
#[derive(Debug, Serialize)]
pub(super) struct TaskStartFrame<'a> {
    id: &'a str,
    name: &'a str,
    input: Box<RawValue>,
    triggers: Vec<String>,
    metadata: Map<String, Value>,
}

impl<'a> TaskStartFrame<'a> {
    pub(super) fn of(task: &'a Task, input: &TaskInput, run: &RunFacts) -> Self {
        let mut metadata = run.metadata.clone();
        metadata.insert("run_id".to_owned(), json!(run.run_id));
        Self {
            id: &task.id,
            name: &task.node,
            input: input_raw(input),
            triggers: task.triggers(),
            metadata,
        }
    }
}

/// Wire form of the end of a task.
#[derive(Debug, Serialize)]
pub(super) struct TaskEndFrame<'a> {
    id: &'a str,
    name: &'a str,
    error: &'a Option<String>,
    result: StateUpdate,
    interrupts: Vec<Value>,
}

impl<'a> TaskEndFrame<'a> {
    pub(super) fn of(task: &'a Task, end: &'a TaskEnd) -> Self {
        let result = end.update.clone().unwrap_or_default();
        Self {
            id: &task.id,
            name: &task.node,
            error: &end.error,
            result,
            interrupts: interrupts(&end.interrupts),
        }
    }
}

/// Envelope of `debug`.
#[derive(Debug, Serialize)]
struct Envelope<'a, P> {
    step: i64,
    timestamp: String,
    #[serde(rename = "type")]
    kind: &'a str,
    payload: P,
}

pub(super) fn debug_frame(
    step: i64,
    at: DateTime<Utc>,
    kind: &str,
    payload: &impl Serialize,
) -> Frame {
    Frame::new(
        "debug",
        &Envelope {
            step,
            timestamp: iso(at),
            kind,
            payload,
        },
    )
}
