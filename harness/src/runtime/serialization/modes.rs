//! Which frames an agent's event becomes, for the modes a run asked for. A mode nobody asked for costs nothing.

use std::borrow::Cow;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use bytes::Bytes;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::checkpoint_frames::{
    CheckpointFrame, CheckpointView, TaskEndFrame, TaskStartFrame, debug_frame,
};
use super::events_mode::{EventsMode, RunFacts};
use super::frames::{Frame, to_bytes};
use super::messages_mode::Accumulating;
use super::values::{interrupts, values_json};
use crate::clock::Clock;
use crate::messages::{Message, MessageChunk};
use crate::runtime::agent::{AgentEvent, MessageMeta, StepEvent, Task, TaskEnd, TaskInput};
use crate::runtime::checkpoint::CheckpointMeta;
use crate::runtime::runs::{StreamMode, StreamModes};
use crate::runtime::stream_bridge::EventData;
use crate::state::{StateUpdate, ThreadState};

/// What a run's viewers asked for.
#[derive(Debug, Clone, Copy, Default)]
pub struct Wanted {
    /// The modes.
    pub modes: StreamModes,
    /// Whether events of nested agents are wanted, too.
    pub subgraphs: bool,
    /// Whether viewers of messages get the human input back.
    pub echo_input: bool,
    /// Whether they get the run's metadata with every message.
    pub describe_messages: bool,
}

/// Encodes one run's events.
#[derive(Debug)]
pub struct ModeEncoder {
    wanted: Wanted,
    clock: Arc<dyn Clock>,
    accumulating: Accumulating,
    events: Option<EventsMode>,
    /// The run, for the modes that tell of it.
    run: Option<Arc<RunFacts>>,
    /// The metadata of the message under way, serialized once for all of its fragments.
    meta: Option<(Arc<MessageMeta>, Bytes)>,
    /// Where fragments are written before their length is known.
    scratch: Vec<u8>,
    /// Whether tasks have told what the step under way writes.
    updates_told: bool,
    /// Encoders of nested agents by namespace, each with what it has told so far.
    nested: HashMap<Arc<str>, NestedEncoder>,
}

/// Encodes the events of an agent inside a call.
#[derive(Debug)]
struct NestedEncoder {
    encoder: Box<ModeEncoder>,
    /// The state it has reached; `None` before its first step, which tells what it begins with.
    reached: Option<Arc<ThreadState>>,
}

impl ModeEncoder {
    /// An encoder for what is wanted.
    pub fn new(wanted: Wanted, clock: Arc<dyn Clock>, run: impl FnOnce() -> RunFacts) -> Self {
        let any = |modes: &[StreamMode]| modes.iter().any(|mode| wanted.modes.has(*mode));
        let tells_of_run = any(&[StreamMode::Events, StreamMode::Tasks, StreamMode::Debug])
            || (wanted.describe_messages
                && any(&[StreamMode::Messages, StreamMode::MessagesTuple]));
        let run = tells_of_run.then(|| Arc::new(run()));
        let events = run
            .clone()
            .filter(|_| wanted.modes.has(StreamMode::Events))
            .map(EventsMode::new);
        Self {
            events,
            ..Self::of(wanted, clock, run)
        }
    }

    fn of(wanted: Wanted, clock: Arc<dyn Clock>, run: Option<Arc<RunFacts>>) -> Self {
        let (accumulating, nested) = (Accumulating::default(), HashMap::new());
        Self {
            wanted,
            clock,
            accumulating,
            events: None,
            run,
            meta: None,
            scratch: Vec::new(),
            updates_told: false,
            nested,
        }
    }

    /// The frames of one event, in order.
    pub fn encode(&mut self, event: &AgentEvent, frames: &mut Vec<Frame>) {
        if let Some(events) = &mut self.events {
            events.hear(event, frames);
        }
        match event {
            AgentEvent::Token(chunk, meta) => self.token(chunk, meta, frames),
            AgentEvent::Message(message, meta) => self.message(message, meta, frames),
            AgentEvent::Step(step) => self.step(step, frames),
            AgentEvent::Custom(payload) if self.has(StreamMode::Custom) => {
                frames.push(Frame::new("custom", payload))
            }
            AgentEvent::LiveOutput(piece) if self.has(StreamMode::Custom) => {
                frames.push(Frame::new("custom", piece))
            }
            AgentEvent::Subagent(news) if self.has(StreamMode::Custom) => {
                frames.push(Frame::new("custom", news))
            }
            AgentEvent::TaskStart(task, input) => self.task_start(task, input, frames),
            AgentEvent::TaskEnd(task, end) => self.task_end(task, end, frames),
            AgentEvent::Nested(namespace, event) if self.wanted.subgraphs => {
                self.nested(namespace, event, frames)
            }
            _ => {}
        }
    }

    /// The frames of a run's beginning: its input.
    pub fn begin(&self, input: &impl Serialize, frames: &mut Vec<Frame>) {
        if let Some(events) = &self.events {
            events.begin(input, frames);
        }
    }

    /// The frames of a run's good end: the state it reached.
    pub fn end(&self, state: &ThreadState, frames: &mut Vec<Frame>) {
        if let Some(events) = &self.events {
            events.end(state, frames);
        }
    }

    /// The `values` frame of a state.
    pub fn values(&self, state: &ThreadState, questions: &[Value], frames: &mut Vec<Frame>) {
        if self.has(StreamMode::Values) {
            frames.push(Frame {
                event: "values".into(),
                data: values_json(state, questions).into(),
            });
        }
    }

    /// The whole state, whichever modes were asked for: viewers replace by it what they saw of an attempt that was lost.
    pub fn snapshot(&self, state: &ThreadState, frames: &mut Vec<Frame>) {
        frames.push(Frame {
            event: "values".into(),
            data: values_json(state, &[]).into(),
        });
    }

    /// The frame of an interrupt for `updates` viewers: the questions, or none for a breakpoint.
    pub fn interrupt(&self, questions: &[Value], frames: &mut Vec<Frame>) {
        if self.has(StreamMode::Updates) {
            frames.push(Frame::new(
                "updates",
                &json!({ "__interrupt__": interrupts(questions) }),
            ));
        }
    }

    /// The frames of a checkpoint. One inside of a call is for viewers of nested agents.
    pub fn checkpoint(&self, view: &CheckpointView<'_>, frames: &mut Vec<Frame>) {
        let (from, namespace) = (frames.len(), &view.place.namespace);
        let unwanted = !namespace.is_empty() && !self.wanted.subgraphs;
        if unwanted || !(self.has(StreamMode::Checkpoints) || self.has(StreamMode::Debug)) {
            return;
        }
        let payload = CheckpointFrame::of(view);
        if self.has(StreamMode::Checkpoints) {
            frames.push(Frame::new("checkpoints", &payload));
        }
        if self.has(StreamMode::Debug) {
            frames.push(debug_frame(
                view.meta.step,
                view.meta.created_at,
                "checkpoint",
                &payload.debug(view),
            ));
        }
        if !namespace.is_empty() {
            frames[from..]
                .iter_mut()
                .for_each(|frame| frame.event = Cow::Owned(format!("{}|{namespace}", frame.event)));
        }
    }

    fn has(&self, mode: StreamMode) -> bool {
        self.wanted.modes.has(mode)
    }

    fn step(&mut self, step: &StepEvent, frames: &mut Vec<Frame>) {
        let told = std::mem::take(&mut self.updates_told);
        let Some(update) = &step.update else { return };
        if !told {
            self.update(&step.node, update, frames);
        }
        self.values(&step.state, &[], frames);
    }

    fn update(&self, node: &str, update: &StateUpdate, frames: &mut Vec<Frame>) {
        if self.has(StreamMode::Updates) {
            frames.push(Frame::new("updates", &NodeUpdate { node, update }));
        }
    }

    fn task_start(&self, task: &Task, input: &TaskInput, frames: &mut Vec<Frame>) {
        if let Some(run) = self
            .run
            .as_ref()
            .filter(|_| self.has(StreamMode::Tasks) || self.has(StreamMode::Debug))
        {
            self.task("task", task, &TaskStartFrame::of(task, input, run), frames);
        }
    }

    fn task_end(&mut self, task: &Task, end: &TaskEnd, frames: &mut Vec<Frame>) {
        if self.has(StreamMode::Tasks) || self.has(StreamMode::Debug) {
            self.task("task_result", task, &TaskEndFrame::of(task, end), frames);
        }
        if let Some(update) = &end.update {
            self.update(&task.node, update, frames);
            self.updates_told = true;
        }
    }

    fn task(&self, kind: &str, task: &Task, payload: &impl Serialize, frames: &mut Vec<Frame>) {
        if self.has(StreamMode::Tasks) {
            frames.push(Frame::new("tasks", payload));
        }
        if self.has(StreamMode::Debug) {
            let step = i64::try_from(task.step).unwrap_or(i64::MAX);
            frames.push(debug_frame(step, self.clock.now(), kind, payload));
        }
    }

    fn token(&mut self, chunk: &MessageChunk, meta: &Arc<MessageMeta>, frames: &mut Vec<Frame>) {
        if self.has(StreamMode::MessagesTuple) {
            let data = self.pair(chunk, meta);
            frames.push(Frame {
                event: "messages".into(),
                data,
            });
        } else if self.has(StreamMode::Messages) {
            let run = self
                .run
                .as_deref()
                .filter(|_| self.wanted.describe_messages);
            self.accumulating
                .token(chunk, || described(meta, run), frames);
        }
    }

    fn message(&mut self, message: &Message, meta: &Arc<MessageMeta>, frames: &mut Vec<Frame>) {
        if message.is_human() && !self.wanted.echo_input {
            return;
        }
        if self.has(StreamMode::MessagesTuple) {
            let data = self.pair(message, meta);
            frames.push(Frame {
                event: "messages".into(),
                data,
            });
        } else if self.has(StreamMode::Messages) {
            let run = self
                .run
                .as_deref()
                .filter(|_| self.wanted.describe_messages);
            self.accumulating
                .whole(message, || described(meta, run), frames);
        }
    }

    /// `[message, metadata]`. The metadata is the same for all fragments of a message, and they share its JSON.
    fn pair(&mut self, message: &impl Serialize, meta: &Arc<MessageMeta>) -> EventData {
        let tail = match &self.meta {
            Some((held, tail)) if Arc::ptr_eq(held, meta) => tail.clone(),
            _ => {
                let run = self
                    .run
                    .as_deref()
                    .filter(|_| self.wanted.describe_messages);
                let tail = Bytes::from([b",", &*to_bytes(&described(meta, run)), b"]"].concat());
                self.meta = Some((meta.clone(), tail.clone()));
                tail
            }
        };
        self.scratch.clear();
        self.scratch.push(b'[');
        if let Err(error) = serde_json::to_writer(&mut self.scratch, message) {
            tracing::error!(%error, "a message cannot be serialized for the stream");
            self.scratch.truncate(1);
            self.scratch.extend_from_slice(b"null");
        }
        EventData::with_tail(Bytes::copy_from_slice(&self.scratch), tail)
    }

    /// The frames of a nested agent's event, under its namespace.
    fn nested(&mut self, namespace: &Arc<str>, event: &AgentEvent, frames: &mut Vec<Frame>) {
        let from = frames.len();
        let nested = match self.nested.entry(namespace.clone()) {
            Entry::Occupied(held) => held.into_mut(),
            Entry::Vacant(free) => {
                let wanted = Wanted {
                    echo_input: false,
                    ..self.wanted
                };
                let events = self
                    .events
                    .as_ref()
                    .and_then(|events| events.inside(namespace));
                let encoder = Self {
                    events,
                    ..Self::of(wanted, self.clock.clone(), self.run.clone())
                };
                free.insert(NestedEncoder {
                    encoder: Box::new(encoder),
                    reached: None,
                })
            }
        };
        if let AgentEvent::Step(step) = event
            && nested.reached.replace(step.state.clone()).is_none()
        {
            nested.encoder.begin(&step.state, frames);
            nested.encoder.values(&step.state, &[], frames);
        }
        nested.encoder.encode(event, frames);
        if let (AgentEvent::Done(_), Some(reached)) = (event, &nested.reached) {
            nested.encoder.end(reached, frames);
            self.nested.remove(namespace);
        }
        for frame in &mut frames[from..] {
            // Neither the accumulated form nor callbacks have namespaces.
            if !frame.event.starts_with("messages/") && frame.event != "events" {
                let (mode, deeper) = frame
                    .event
                    .split_at(frame.event.find('|').unwrap_or(frame.event.len()));
                frame.event = Cow::Owned(format!("{mode}|{namespace}{deeper}"));
            }
        }
    }
}

/// What is told of a message, on top of what is told of its run.
fn described(meta: &MessageMeta, run: Option<&RunFacts>) -> Value {
    let own = json!(meta);
    let (Some(run), Value::Object(own)) = (run, &own) else {
        return own;
    };
    let mut told = run.metadata.clone();
    told.insert("run_attempt".to_owned(), run.attempt.into());
    told.insert("langgraph_host".to_owned(), "self-hosted".into());
    told.extend(own.clone());
    told.into()
}

/// `{node: update}`; an update of nothing is null.
struct NodeUpdate<'a> {
    node: &'a str,
    update: &'a StateUpdate,
}

impl Serialize for NodeUpdate<'_> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SystemClock;
    use crate::runtime::agent::{LiveOutput, OutputStream};

    #[test]
    fn what_a_call_prints_is_for_viewers_of_custom_alone_and_inside_of_calls_for_those_of_subgraphs()
     {
        let piece = LiveOutput::ToolOutput {
            tool_call_id: "c1".to_owned(),
            tool: "bash".to_owned(),
            stream: OutputStream::Stdout,
            data: "x".to_owned(),
        };
        let event = AgentEvent::LiveOutput(Box::new(piece));
        let nested = AgentEvent::Nested("tools:1".into(), Box::new(event.clone()));
        let others = [
            StreamMode::Values,
            StreamMode::Updates,
            StreamMode::MessagesTuple,
            StreamMode::Checkpoints,
        ];
        for (modes, subgraphs, names) in [
            (vec![StreamMode::Custom], false, vec!["custom"]),
            (
                vec![StreamMode::Custom],
                true,
                vec!["custom", "custom|tools:1"],
            ),
            (others.to_vec(), true, vec![]),
        ] {
            let wanted = Wanted {
                modes: modes.into_iter().collect(),
                subgraphs,
                ..Wanted::default()
            };
            let mut encoder = ModeEncoder::new(wanted, Arc::new(SystemClock), || {
                unreachable!("nobody asks about the run")
            });
            let mut frames = Vec::new();
            encoder.encode(&event, &mut frames);
            encoder.encode(&nested, &mut frames);
            assert_eq!(
                frames.iter().map(|frame| &*frame.event).collect::<Vec<_>>(),
                names
            );
        }
    }
}
