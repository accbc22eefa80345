//! The `events` mode: callback events in the shape of LangChain's `astream_events` (version 2).

use std::collections::HashMap;
use std::sync::Arc;

use indexmap::IndexMap;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::frames::Frame;
use super::langgraph::add_task;
use super::run_facts::RunFacts;
use super::values::{input_raw, values_raw};
use crate::agent::{AgentEvent, Task, TaskEnd, TaskInput, is_auxiliary};
use crate::checkpoint::within;
use deerflow_core::messages::{Message, ToolCall};
use deerflow_core::state::ThreadState;

/// Converts one run's events into start, stream and end events.
#[derive(Debug)]
pub(super) struct EventsMode {
    run: Arc<RunFacts>,
    scope: Scope,
    /// Active tasks.
    tasks: HashMap<String, TaskInput>,
    /// Active calls, with the tasks that make them.
    calls: HashMap<String, (Arc<Task>, Arc<ToolCall>)>,
    /// The task that calls a model, and the state it is based on.
    model_task: Option<(Arc<Task>, Arc<ThreadState>)>,
    /// Answers in progress by message id, in the order of their starts.
    answers: IndexMap<String, Answer>,
}

/// Answer of a model, with the task that calls it and the state that the task is based on.
#[derive(Debug, Clone)]
struct Answer {
    model: String,
    task: Arc<Task>,
    state: Arc<ThreadState>,
}

impl Answer {
    /// Returns the model input: the messages of the state, as the list of lists that LangChain
    /// passes to callbacks.
    fn input(&self) -> (&'static str, Box<RawValue>) {
        let messages = [self.state.messages()];
        ("input", raw(&Messages { messages }))
    }
}

/// Source of events: the run, or an agent inside one of its calls.
#[derive(Debug)]
struct Scope {
    id: String,
    name: String,
    /// Ids of the enclosing scopes, from outermost to innermost.
    parents: Vec<String>,
    namespace: String,
}

/// One event. `data` is already serialized.
struct Event<'a> {
    event: &'static str,
    data: Vec<(&'static str, Box<RawValue>)>,
    name: &'a str,
    tags: Vec<String>,
    run_id: &'a str,
    task: Option<&'a Task>,
    parents: Vec<&'a str>,
}

impl EventsMode {
    pub(super) fn new(run: Arc<RunFacts>) -> Self {
        let (id, name) = (run.run_id.to_string(), run.assistant.clone());
        Self::of(
            run,
            Scope {
                id,
                name,
                parents: Vec::new(),
                namespace: String::new(),
            },
        )
    }

    fn of(run: Arc<RunFacts>, scope: Scope) -> Self {
        Self {
            run,
            scope,
            tasks: HashMap::new(),
            calls: HashMap::new(),
            model_task: None,
            answers: IndexMap::new(),
        }
    }

    /// Creates the mode of the agent inside the active call that has this namespace.
    pub(super) fn inside(&self, namespace: &str) -> Option<Self> {
        let (task, call) = self
            .calls
            .values()
            .find(|(task, _)| task.namespace() == namespace)?;
        let tool = derived(&task.id, &call.id);
        let scope = Scope {
            id: derived(&tool, "agent"),
            name: call.name.clone(),
            parents: self
                .below(&[&task.id, &tool])
                .into_iter()
                .map(str::to_owned)
                .collect(),
            namespace: within(&self.scope.namespace, namespace),
        };
        Some(Self::of(self.run.clone(), scope))
    }

    /// Returns the parent ids of an event: those of the scope, the scope itself, and `more`.
    fn below<'a>(&'a self, more: &[&'a str]) -> Vec<&'a str> {
        self.scope
            .parents
            .iter()
            .chain([&self.scope.id])
            .map(String::as_str)
            .chain(more.iter().copied())
            .collect()
    }

    pub(super) fn begin(&self, input: &impl Serialize, frames: &mut Vec<Frame>) {
        self.of_run("on_chain_start", ("input", raw(input)), frames);
    }

    pub(super) fn end(&self, state: &ThreadState, frames: &mut Vec<Frame>) {
        self.of_run("on_chain_end", ("output", values_raw(state)), frames);
    }

    pub(super) fn on_event(&mut self, event: &AgentEvent, frames: &mut Vec<Frame>) {
        match event {
            AgentEvent::TaskStart(task, input) => self.task_start(task, input, frames),
            AgentEvent::TaskEnd(task, end) => self.task_end(task, end, frames),
            // Auxiliary calls of the framework are not part of the conversation.
            AgentEvent::ModelRequest { caller, .. } if is_auxiliary(caller) => {}
            AgentEvent::ModelCall(call) if call.is_auxiliary() => {}
            AgentEvent::ModelRequest {
                model, message_id, ..
            } => {
                let Some((task, state)) = self.model_task.clone() else {
                    return;
                };
                let answer = Answer {
                    model: model.clone(),
                    task,
                    state,
                };
                let data = vec![answer.input()];
                self.of_model("on_chat_model_start", message_id, &answer, data, frames);
                self.answers.shift_remove(message_id);
                self.answers.insert(message_id.clone(), answer);
            }
            AgentEvent::Token(chunk, _) => {
                if let Some((id, answer)) = self.answer(Some(&chunk.id)) {
                    let data = vec![("chunk", raw(&**chunk))];
                    self.of_model("on_chat_model_stream", id, answer, data, frames);
                }
            }
            AgentEvent::ModelCall(call) => {
                if let Some((id, answer)) = self.answer(call.message.id.as_deref()) {
                    let data = vec![("output", raw(&call.message)), answer.input()];
                    self.of_model("on_chat_model_end", id, answer, data, frames);
                    let id = id.clone();
                    self.answers.shift_remove(&id);
                }
            }
            AgentEvent::ToolStart { call_id, .. } => {
                self.of_tool("on_tool_start", call_id, None, frames)
            }
            AgentEvent::ToolEnd(call) => {
                self.of_tool(
                    "on_tool_end",
                    &call.call_id,
                    Some(("output", raw(&call.message))),
                    frames,
                );
                self.calls.remove(&call.call_id);
            }
            _ => {}
        }
    }

    fn task_start(&mut self, task: &Arc<Task>, input: &TaskInput, frames: &mut Vec<Frame>) {
        match input {
            TaskInput::State(state) => self.model_task = Some((task.clone(), state.clone())),
            TaskInput::Call(call) => {
                self.calls
                    .insert(call.id.clone(), (task.clone(), call.clone()));
            }
        }
        self.of_task(
            "on_chain_start",
            task,
            vec![("input", input_raw(input))],
            frames,
        );
        self.tasks.insert(task.id.clone(), input.clone());
    }

    fn task_end(&mut self, task: &Arc<Task>, end: &TaskEnd, frames: &mut Vec<Frame>) {
        self.answers.retain(|_, answer| answer.task.id != task.id);
        let input = self.tasks.remove(&task.id);
        let Some(update) = &end.update else { return };
        self.of_task(
            "on_chain_stream",
            task,
            vec![("chunk", raw(update))],
            frames,
        );
        let data = [("output", raw(update))]
            .into_iter()
            .chain(input.map(|input| ("input", input_raw(&input))));
        self.of_task("on_chain_end", task, data.collect(), frames);
    }

    fn of_run(
        &self,
        event: &'static str,
        data: (&'static str, Box<RawValue>),
        frames: &mut Vec<Frame>,
    ) {
        let Scope {
            id, name, parents, ..
        } = &self.scope;
        let parents = parents.iter().map(String::as_str).collect();
        self.push(
            &Event {
                event,
                data: vec![data],
                name,
                tags: Vec::new(),
                run_id: id,
                task: None,
                parents,
            },
            frames,
        );
    }

    fn of_task(
        &self,
        event: &'static str,
        task: &Task,
        data: Vec<(&'static str, Box<RawValue>)>,
        frames: &mut Vec<Frame>,
    ) {
        let tags = vec![format!("graph:step:{}", task.step)];
        let parents = self.below(&[]);
        self.push(
            &Event {
                event,
                data,
                name: &task.node,
                tags,
                run_id: &task.id,
                task: Some(task),
                parents,
            },
            frames,
        );
    }

    /// Returns the answer with this message id, or the newest one if none has it.
    fn answer(&self, id: Option<&str>) -> Option<(&String, &Answer)> {
        id.and_then(|id| self.answers.get_key_value(id))
            .or_else(|| self.answers.last())
    }

    fn of_model(
        &self,
        event: &'static str,
        id: &str,
        Answer { model, task, .. }: &Answer,
        data: Vec<(&'static str, Box<RawValue>)>,
        frames: &mut Vec<Frame>,
    ) {
        let run_id = derived(&task.id, id);
        let parents = self.below(&[&task.id]);
        self.push(
            &Event {
                event,
                data,
                name: model,
                tags: vec!["seq:step:1".to_owned()],
                run_id: &run_id,
                task: Some(task),
                parents,
            },
            frames,
        );
    }

    fn of_tool(
        &self,
        event: &'static str,
        call_id: &str,
        output: Option<(&'static str, Box<RawValue>)>,
        frames: &mut Vec<Frame>,
    ) {
        let Some((task, call)) = self.calls.get(call_id) else {
            return;
        };
        let run_id = derived(&task.id, call_id);
        let data = output
            .into_iter()
            .chain([("input", raw(&call.args))])
            .collect();
        let parents = self.below(&[&task.id]);
        let event = Event {
            event,
            data,
            name: &call.name,
            tags: vec!["seq:step:1".to_owned()],
            run_id: &run_id,
            task: Some(task),
            parents,
        };
        self.push(&event, frames);
    }

    fn push(&self, event: &Event<'_>, frames: &mut Vec<Frame>) {
        frames.push(Frame::new(
            "events",
            &Wire {
                event: event.event,
                data: event
                    .data
                    .iter()
                    .map(|(key, value)| (*key, &**value))
                    .collect(),
                name: event.name,
                tags: &event.tags,
                run_id: event.run_id,
                metadata: self.metadata(event.task),
                parent_ids: &event.parents,
            },
        ));
    }

    fn metadata(&self, task: Option<&Task>) -> Map<String, Value> {
        let mut metadata = self.run.metadata.clone();
        let mut add = |key: &str, value: Value| metadata.insert(key.to_owned(), value);
        add("thread_id", json!(self.run.thread_id));
        add("run_id", json!(self.run.run_id));
        if let Some(task) = task {
            add_task(&mut metadata, task, &self.scope.namespace);
        }
        metadata
    }
}

/// Field order of the wire.
#[derive(Serialize)]
struct Wire<'a> {
    event: &'a str,
    data: IndexMap<&'a str, &'a RawValue>,
    name: &'a str,
    tags: &'a [String],
    run_id: &'a str,
    metadata: Map<String, Value>,
    parent_ids: &'a [&'a str],
}

#[derive(Serialize)]
struct Messages<'a> {
    messages: [&'a [Message]; 1],
}

/// Derives the id of an item inside a task. The start and the end of the item get the same id.
fn derived(task: &str, inside: &str) -> String {
    Uuid::new_v5(
        &Uuid::parse_str(task).unwrap_or_default(),
        inside.as_bytes(),
    )
    .to_string()
}

fn raw(value: &impl Serialize) -> Box<RawValue> {
    to_raw_value(value).unwrap_or_else(|_| RawValue::NULL.to_owned())
}
