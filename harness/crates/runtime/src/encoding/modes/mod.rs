//! Encodes agent events as frames for the modes that a run requested. Frames of other modes are not
//! built.

mod nested;

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use serde::Serialize;
use serde_json::{Value, json};

use super::checkpoint_frames::{
    CheckpointFrame, CheckpointView, TaskEndFrame, TaskStartFrame, debug_frame,
};
use super::described_message::DescribedMessage;
use super::events_mode::EventsMode;
use super::frames::Frame;
use super::message_pairs::MessagePairs;
use super::messages_mode::Accumulating;
use super::run_facts::RunFacts;
use super::shared_messages::SharedMessages;
use super::values::{interrupts, values_data};
use crate::agent::{AgentEvent, MessageMeta, StepEvent, Task, TaskEnd, TaskInput};
use crate::definition::{StreamMode, StreamModes};
use deerflow_core::clock::Clock;
use deerflow_core::messages::{Message, MessageChunk};
use deerflow_core::state::{StateUpdate, ThreadState};

/// Stream options that a run requested.
#[derive(Debug, Clone, Copy, Default)]
pub struct StreamOptions {
    /// Requested modes.
    pub modes: StreamModes,
    /// `true` to include events of nested agents.
    pub subgraphs: bool,
    /// `true` to send the human input back to viewers of messages.
    pub echo_input: bool,
    /// `true` to send the run's metadata with every message.
    pub describe_messages: bool,
}

/// Encoder of one run's events.
#[derive(Debug)]
pub struct ModeEncoder {
    options: StreamOptions,
    clock: Arc<dyn Clock>,
    accumulating: Accumulating,
    events: Option<EventsMode>,
    /// Facts of the run, for the modes that contain them.
    run: Option<Arc<RunFacts>>,
    pairs: MessagePairs,
    /// Messages of the last state that was sent.
    shared: SharedMessages,
    /// `true` if frames of whole states may wait for the next one.
    defers_values: bool,
    /// `true` if the last change of the state was not sent as a whole state.
    values_deferred: bool,
    /// `true` if the tasks of the current step have sent their updates.
    updates_sent: bool,
    /// Encoders of nested agents by namespace.
    nested: HashMap<Arc<str>, NestedEncoder>,
}

/// Encoder of the events of an agent inside a call.
#[derive(Debug)]
struct NestedEncoder {
    encoder: Box<ModeEncoder>,
    /// State after the last step; `None` before the first one.
    reached: Option<Arc<ThreadState>>,
}

impl ModeEncoder {
    /// Creates an encoder for the options.
    pub fn new(
        options: StreamOptions,
        clock: Arc<dyn Clock>,
        run: impl FnOnce() -> RunFacts,
    ) -> Self {
        let any = |modes: &[StreamMode]| modes.iter().any(|mode| options.modes.has(*mode));
        let needs_run_facts = any(&[StreamMode::Events, StreamMode::Tasks, StreamMode::Debug])
            || (options.describe_messages
                && any(&[StreamMode::Messages, StreamMode::MessagesTuple]));
        let run = needs_run_facts.then(|| Arc::new(run()));
        let events = run
            .clone()
            .filter(|_| options.modes.has(StreamMode::Events))
            .map(EventsMode::new);
        Self {
            events,
            defers_values: true,
            ..Self::of(options, clock, run)
        }
    }

    fn of(options: StreamOptions, clock: Arc<dyn Clock>, run: Option<Arc<RunFacts>>) -> Self {
        let (accumulating, nested) = (Accumulating::default(), HashMap::new());
        Self {
            options,
            clock,
            accumulating,
            events: None,
            run,
            pairs: MessagePairs::new(),
            shared: SharedMessages::default(),
            defers_values: false,
            values_deferred: false,
            updates_sent: false,
            nested,
        }
    }

    /// Encodes one event as frames, in order.
    pub fn encode(&mut self, event: &AgentEvent, frames: &mut Vec<Frame>) {
        if let Some(events) = &mut self.events {
            events.on_event(event, frames);
        }
        match event {
            AgentEvent::Token(chunk, meta) => self.token(chunk, meta, frames),
            AgentEvent::Message(message, meta) => self.message(message, meta, frames),
            AgentEvent::Step(step) => self.step(step, frames),
            AgentEvent::Custom(payload) if self.has(StreamMode::Custom) => {
                frames.push(Frame::new("custom", payload))
            }
            AgentEvent::NodeEvent(payload) | AgentEvent::Unrecorded(payload)
                if self.has(StreamMode::Custom) =>
            {
                frames.push(Frame::new("custom", payload))
            }
            AgentEvent::LiveOutput(piece) if self.has(StreamMode::Custom) => {
                frames.push(Frame::new("custom", piece))
            }
            AgentEvent::Subagent(update_event) if self.has(StreamMode::Custom) => {
                frames.push(Frame::new("custom", update_event))
            }
            AgentEvent::TaskStart(task, input) => self.task_start(task, input, frames),
            AgentEvent::TaskEnd(task, end) => self.task_end(task, end, frames),
            AgentEvent::Nested(namespace, event) if self.options.subgraphs => {
                self.nested(namespace, event, frames)
            }
            _ => {}
        }
    }

    /// Encodes the start of a run: its input, which is requested only for a mode that has it.
    pub fn begin<T: Serialize>(&self, input: impl FnOnce() -> T, frames: &mut Vec<Frame>) {
        if let Some(events) = &self.events {
            events.begin(&input(), frames);
        }
    }

    /// Encodes the successful end of a run: its final state.
    pub fn end(&mut self, state: &ThreadState, frames: &mut Vec<Frame>) {
        if self.values_deferred {
            self.values(state, &[], frames);
        }
        if let Some(events) = &self.events {
            events.end(state, frames);
        }
    }

    /// Encodes a state as a `values` frame, unless the last one has the same bytes.
    pub fn values(&mut self, state: &ThreadState, questions: &[Value], frames: &mut Vec<Frame>) {
        self.values_deferred = false;
        if !self.has(StreamMode::Values) {
            return;
        }
        if let Some(data) = self.shared.changed_values(state, questions) {
            frames.push(Frame {
                event: "values".into(),
                data,
            });
        }
    }

    /// Records that the agent has completed the input of the last frame. Viewers receive the
    /// completed input with the next change of the state.
    pub fn input_completed(&mut self, state: &ThreadState) {
        if self.has(StreamMode::Values) {
            self.shared.replace_sent(state);
        }
    }

    /// Encodes the whole state, for any requested modes: viewers replace the events of a superseded
    /// attempt with it.
    pub fn snapshot(&self, state: &ThreadState, frames: &mut Vec<Frame>) {
        frames.push(Frame {
            event: "values".into(),
            data: values_data(state, &[]),
        });
    }

    /// Encodes an interrupt for `updates` viewers: the questions, or none for a breakpoint.
    pub fn interrupt(&self, questions: &[Value], frames: &mut Vec<Frame>) {
        if self.has(StreamMode::Updates) {
            frames.push(Frame::new(
                "updates",
                &json!({ "__interrupt__": interrupts(questions) }),
            ));
        }
    }

    /// Encodes a checkpoint. A nested one is only sent to viewers of nested agents.
    pub fn checkpoint(&self, view: &CheckpointView<'_>, frames: &mut Vec<Frame>) {
        let (from, namespace) = (frames.len(), &view.place.namespace);
        let unwanted = !namespace.is_empty() && !self.options.subgraphs;
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
        self.options.modes.has(mode)
    }

    fn step(&mut self, step: &StepEvent, frames: &mut Vec<Frame>) {
        self.accumulating.end_step(step);
        self.pairs.end_step();
        // A step without an update reports progress within the step.
        let Some(update) = &step.update else { return };
        if !std::mem::take(&mut self.updates_sent) {
            self.update(&step.node, update, frames);
        }
        // A step that changes no message needs no frame of its own: the next frame of the whole
        // state, after the next step or at the end, has its changes.
        if self.defers_values && !step.checkpoint && self.shared.sent_messages_of(&step.state) {
            self.values_deferred = true;
        } else {
            self.values(&step.state, &[], frames);
        }
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
            self.updates_sent = true;
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
        let options = self.options;
        let run = self.run.as_deref().filter(|_| options.describe_messages);
        let described = DescribedMessage { meta, run };
        if options.modes.has(StreamMode::MessagesTuple) {
            let data = self.pairs.fragment(chunk, meta, &described);
            frames.push(Frame {
                event: "messages".into(),
                data,
            });
        } else if options.modes.has(StreamMode::Messages) {
            self.accumulating.token(chunk, meta, &described, frames);
        }
    }

    fn message(&mut self, message: &Message, meta: &Arc<MessageMeta>, frames: &mut Vec<Frame>) {
        if message.is_human() && !self.options.echo_input {
            return;
        }
        let options = self.options;
        let run = self.run.as_deref().filter(|_| options.describe_messages);
        let described = DescribedMessage { meta, run };
        if options.modes.has(StreamMode::MessagesTuple) {
            let data = self.pairs.message(message, meta, &described);
            frames.push(Frame {
                event: "messages".into(),
                data,
            });
        } else if options.modes.has(StreamMode::Messages) {
            self.accumulating.whole(message, &described, frames);
        }
    }
}

/// `{node: update}`; an empty update is null.
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

#[cfg(test)]
#[path = "mod_tests.rs"]
mod tests;
