//! Which frames an agent's event becomes, for the modes a run asked for. A mode nobody asked for costs nothing.

use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::frames::{Frame, to_bytes};
use super::messages_mode::Accumulating;
use super::values::values_json;
use crate::clock::iso;
use crate::messages::{Message, MessageChunk};
use crate::runtime::agent::{AgentEvent, MessageMeta, StepEvent};
use crate::runtime::checkpoint::CheckpointMeta;
use crate::runtime::runs::{StreamMode, StreamModes};
use crate::state::ThreadState;

/// Encodes one run's events.
#[derive(Debug)]
pub struct ModeEncoder {
    modes: StreamModes,
    echo_input: bool,
    accumulating: Accumulating,
    /// The metadata of the message under way, serialized once for all of its fragments.
    meta: Option<(Arc<MessageMeta>, Bytes)>,
    step: i64,
}

/// What `checkpoints` viewers see of a checkpoint: never a run's configuration, which holds secrets in the original.
#[derive(Debug)]
pub struct CheckpointView<'a> {
    /// Facts.
    pub meta: &'a CheckpointMeta,
    /// The state.
    pub state: &'a ThreadState,
}

impl ModeEncoder {
    /// An encoder for these modes.
    pub fn new(modes: StreamModes, echo_input: bool) -> Self {
        Self { modes, echo_input, accumulating: Accumulating::default(), meta: None, step: 0 }
    }

    /// The frames of one event, in order.
    pub fn encode(&mut self, event: &AgentEvent, frames: &mut Vec<Frame>) {
        match event {
            AgentEvent::Token(chunk, meta) => self.token(chunk, meta, frames),
            AgentEvent::Message(message, meta) => self.message(message, meta, frames),
            AgentEvent::Step(step) => self.step(step, frames),
            AgentEvent::Custom(payload) if self.modes.has(StreamMode::Custom) => frames.push(Frame::new("custom", payload)),
            AgentEvent::TaskStart { id, name, input } => {
                let payload = json!({ "id": id, "name": name, "input": input, "triggers": [], "metadata": {} });
                self.task("task", &payload, frames);
            }
            AgentEvent::TaskEnd { id, name, result, error } => {
                let payload = json!({ "id": id, "name": name, "error": error, "result": result, "interrupts": [] });
                self.task("task_result", &payload, frames);
            }
            _ => {}
        }
    }

    /// The `values` frame of a state.
    pub fn values(&self, state: &ThreadState, questions: &[Value], frames: &mut Vec<Frame>) {
        if self.modes.has(StreamMode::Values) {
            frames.push(Frame { event: "values".into(), data: values_json(state, questions) });
        }
    }

    /// The frame of an interrupt for `updates` viewers: the questions, or none for a breakpoint.
    pub fn interrupt(&self, questions: &[Value], frames: &mut Vec<Frame>) {
        if self.modes.has(StreamMode::Updates) {
            frames.push(Frame::new("updates", &json!({ "__interrupt__": questions })));
        }
    }

    /// The frames of a checkpoint.
    pub fn checkpoint(&mut self, view: &CheckpointView<'_>, frames: &mut Vec<Frame>) {
        self.step = view.meta.step;
        if !self.modes.has(StreamMode::Checkpoints) && !self.modes.has(StreamMode::Debug) {
            return;
        }
        let payload = checkpoint_payload(view);
        if self.modes.has(StreamMode::Checkpoints) {
            frames.push(Frame::new("checkpoints", &payload));
        }
        if self.modes.has(StreamMode::Debug) {
            frames.push(Frame::new("debug", &debug_envelope(self.step, &iso(view.meta.created_at), "checkpoint", &payload)));
        }
    }

    fn step(&mut self, step: &StepEvent, frames: &mut Vec<Frame>) {
        let Some(update) = &step.update else { return };
        if self.modes.has(StreamMode::Updates) {
            frames.push(Frame::new("updates", &Node { node: &step.node, update }));
        }
        self.values(&step.state, &[], frames);
    }

    fn token(&mut self, chunk: &MessageChunk, meta: &Arc<MessageMeta>, frames: &mut Vec<Frame>) {
        if self.modes.has(StreamMode::MessagesTuple) {
            let data = self.pair(chunk, meta);
            frames.push(Frame { event: "messages".into(), data });
        } else if self.modes.has(StreamMode::Messages) {
            self.accumulating.token(chunk, meta, frames);
        }
    }

    fn message(&mut self, message: &Message, meta: &Arc<MessageMeta>, frames: &mut Vec<Frame>) {
        if message.is_human() && !self.echo_input {
            return;
        }
        if self.modes.has(StreamMode::MessagesTuple) {
            let data = self.pair(message, meta);
            frames.push(Frame { event: "messages".into(), data });
        } else if self.modes.has(StreamMode::Messages) {
            self.accumulating.whole(message, meta, frames);
        }
    }

    /// `[message, metadata]`, with the metadata's JSON reused while it stays the same.
    fn pair(&mut self, message: &impl Serialize, meta: &Arc<MessageMeta>) -> Bytes {
        let meta_json = match &self.meta {
            Some((held, json)) if Arc::ptr_eq(held, meta) => json.clone(),
            _ => {
                let json = to_bytes(&**meta);
                self.meta = Some((meta.clone(), json.clone()));
                json
            }
        };
        let mut pair = BytesMut::with_capacity(meta_json.len() + 512).writer();
        pair.get_mut().put_u8(b'[');
        if let Err(error) = serde_json::to_writer(&mut pair, message) {
            tracing::error!(%error, "a message cannot be serialized for the stream");
        }
        let mut pair = pair.into_inner();
        pair.put_u8(b',');
        pair.put_slice(&meta_json);
        pair.put_u8(b']');
        pair.freeze()
    }

    fn task(&self, kind: &str, payload: &Value, frames: &mut Vec<Frame>) {
        if self.modes.has(StreamMode::Tasks) {
            frames.push(Frame::new("tasks", payload));
        }
        if self.modes.has(StreamMode::Debug) {
            frames.push(Frame::new("debug", &debug_envelope(self.step, "", kind, payload)));
        }
    }
}

fn debug_envelope(step: i64, timestamp: &str, kind: &str, payload: &Value) -> Value {
    json!({ "step": step, "timestamp": timestamp, "type": kind, "payload": payload })
}

fn checkpoint_payload(view: &CheckpointView<'_>) -> Value {
    let meta = view.meta;
    let config = |id: &str| json!({ "configurable": { "checkpoint_ns": "", "thread_id": meta.thread_id, "checkpoint_id": id } });
    let values = serde_json::to_value(view.state).unwrap_or(Value::Null);
    json!({
        "config": config(meta.checkpoint_id.as_str()),
        "parent_config": meta.parent_id.as_ref().map(|id| config(id.as_str())),
        "values": values,
        "metadata": { "source": meta.source, "step": meta.step, "parents": {} },
        "next": meta.next.iter().map(|task| &task.name).collect::<Vec<_>>(),
        "tasks": meta.next.iter().map(|task| json!({ "id": task.id, "name": task.name, "interrupts": task.interrupts, "state": null })).collect::<Vec<_>>(),
    })
}

/// `{node: update}`; an update of nothing is null.
struct Node<'a> {
    node: &'a str,
    update: &'a crate::state::StateUpdate,
}

impl Serialize for Node<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let update = (!self.update.is_empty()).then_some(self.update);
        serializer.collect_map([(self.node, update)])
    }
}

impl CheckpointMeta {
    /// The metadata that state and history show: bookkeeping, then the free entries.
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
