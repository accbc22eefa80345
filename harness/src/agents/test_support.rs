//! Test helpers for agents: a model that replays answers, scripted tools, and a run without a
//! runtime.

use std::collections::VecDeque;
use std::sync::Arc;

use async_trait::async_trait;
use chrono::DateTime;
use futures_util::{StreamExt, stream};
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use crate::clock::ManualClock;
use crate::ids::{RunId, SeededIds, ThreadId};
use crate::messages::{Message, MessageChunk, ToolCallChunk};
use crate::models::{ChatModel, ModelError, ModelInfo, ModelRequest, ModelStream};
use crate::runtime::actor_context::ActorContext;
use crate::runtime::agent::{
    Agent, AgentError, AgentEvent, AgentInput, AgentOutcome, AgentStart, CallLog, EventReceiver,
    EventSink, RunContext, StepEvent,
};
use crate::runtime::checkpoint::NestedStates;
use crate::runtime::runs::NodeSelector;
use crate::state::ThreadState;

/// One answer of a [`ReplayModel`].
#[derive(Debug, Clone)]
pub(crate) enum Reply {
    /// Text.
    Say(&'static str),
    /// Calls: id, tool, arguments as the model writes them.
    Call(Vec<(&'static str, &'static str, String)>),
    /// Error.
    Fail(ModelError),
    /// Text whose stream breaks off.
    Cut(&'static str),
    /// One chunk, then the end of the stream.
    Chunk(Box<MessageChunk>),
}

/// Calls with readable arguments.
pub(crate) fn calls<const N: usize>(calls: [(&'static str, &'static str, Value); N]) -> Reply {
    Reply::Call(
        calls
            .into_iter()
            .map(|(id, name, args)| (id, name, args.to_string()))
            .collect(),
    )
}

/// Replays answers in order, then repeats the last one, and records its requests.
#[derive(Debug)]
pub(crate) struct ReplayModel {
    info: ModelInfo,
    replies: Mutex<VecDeque<Reply>>,
    requests: Mutex<Vec<ModelRequest>>,
}

impl ReplayModel {
    pub(crate) fn new(replies: impl IntoIterator<Item = Reply>) -> Arc<Self> {
        let info = ModelInfo {
            name: "replay".to_owned(),
            model: "replay-1".to_owned(),
            provider: "replay".to_owned(),
            supports_vision: false,
        };
        Arc::new(Self {
            info,
            replies: Mutex::new(replies.into_iter().collect()),
            requests: Mutex::default(),
        })
    }

    /// Like `new`, with image support.
    pub(crate) fn with_images(replies: impl IntoIterator<Item = Reply>) -> Arc<Self> {
        let mut model = Arc::into_inner(Self::new(replies)).unwrap();
        model.info.supports_vision = true;
        Arc::new(model)
    }

    pub(crate) fn requests(&self) -> Vec<ModelRequest> {
        self.requests.lock().clone()
    }
}

#[async_trait]
impl ChatModel for ReplayModel {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    async fn stream(&self, request: ModelRequest) -> Result<ModelStream, ModelError> {
        let id = request.message_id.clone();
        self.requests.lock().push(request);
        let mut replies = self.replies.lock();
        let reply = if replies.len() > 1 {
            replies.pop_front()
        } else {
            replies.front().cloned()
        };
        let mut chunks = match reply.unwrap_or(Reply::Say("")) {
            Reply::Fail(error) => return Err(error),
            Reply::Chunk(chunk) => vec![MessageChunk {
                id,
                chunk_position: Some("last"),
                ..*chunk
            }],
            Reply::Cut(text) => vec![MessageChunk {
                content: text.to_owned(),
                ..MessageChunk::empty(&id)
            }],
            Reply::Say(text) => {
                let words = text.split_inclusive(' ').map(|word| MessageChunk {
                    content: word.to_owned(),
                    ..MessageChunk::empty(&id)
                });
                words.chain([last(&id)]).collect()
            }
            Reply::Call(calls) => vec![
                MessageChunk {
                    tool_call_chunks: call_chunks(calls),
                    ..MessageChunk::empty(&id)
                },
                last(&id),
            ],
        };
        Ok(stream::iter(chunks.drain(..).map(Ok).collect::<Vec<_>>()).boxed())
    }
}

fn last(id: &str) -> MessageChunk {
    MessageChunk {
        chunk_position: Some("last"),
        ..MessageChunk::empty(id)
    }
}

fn call_chunks(calls: Vec<(&'static str, &'static str, String)>) -> Vec<ToolCallChunk> {
    let chunk = |(index, (id, name, args)): (usize, (&str, &str, String))| ToolCallChunk {
        name: Some(name.to_owned()),
        args: Some(args),
        id: Some(id.to_owned()),
        index: index as u32,
        kind: "tool_call_chunk",
    };
    calls.into_iter().enumerate().map(chunk).collect()
}

/// Returns a context for one run with its own ids, and the receiver of its events.
pub(crate) fn context(seed: u64) -> (RunContext, EventReceiver) {
    let (sink, events) = EventSink::channel();
    let context = RunContext {
        thread_id: ThreadId::parse("thread").unwrap(),
        run_id: RunId::parse("run").unwrap(),
        actor: ActorContext::user("ann"),
        options: Arc::new(Map::new()),
        tags: vec![],
        namespace: "".into(),
        recursion_limit: 100,
        interrupt_before: NodeSelector::None,
        interrupt_after: NodeSelector::None,
        clock: Arc::new(ManualClock::starting_at(
            DateTime::from_timestamp(1_800_000_000, 0).unwrap(),
        )),
        ids: Arc::new(SeededIds::new(seed)),
        sink,
        calls: CallLog::default(),
        token: CancellationToken::new(),
    };
    (context, events)
}

/// Returns a state with these messages; missing ids become `h0`, `h1` and so on.
pub(crate) fn state_of(messages: impl IntoIterator<Item = Message>) -> ThreadState {
    let with_id = |(at, message): (usize, Message)| match &message.id {
        Some(_) => message,
        None => message.with(|body| body.id = Some(format!("h{at}"))),
    };
    ThreadState::restored(
        messages
            .into_iter()
            .enumerate()
            .map(with_id)
            .zip(1..)
            .map(|(message, at)| (at, message)),
        Default::default(),
    )
}

/// All events of a run and its outcome.
#[derive(Debug)]
pub(crate) struct RunOutput {
    pub(crate) events: Vec<AgentEvent>,
    pub(crate) outcome: Result<AgentOutcome, AgentError>,
}

impl RunOutput {
    pub(crate) fn steps(&self) -> Vec<&StepEvent> {
        self.events
            .iter()
            .filter_map(|event| {
                if let AgentEvent::Step(step) = event {
                    Some(step)
                } else {
                    None
                }
            })
            .collect()
    }

    /// Nodes of the steps with updates.
    pub(crate) fn nodes(&self) -> Vec<&str> {
        self.steps()
            .into_iter()
            .filter(|step| step.update.is_some())
            .map(|step| step.node.as_str())
            .collect()
    }

    pub(crate) fn last_step(&self) -> &StepEvent {
        self.steps().last().unwrap()
    }

    pub(crate) fn state(&self) -> &ThreadState {
        &self.last_step().state
    }

    /// `type:text` of every message.
    pub(crate) fn transcript(&self) -> Vec<String> {
        transcript(self.state().messages())
    }

    /// Last step with a checkpoint, from which another process resumes.
    pub(crate) fn saved(&self) -> (ThreadState, Option<Value>) {
        let step = self
            .steps()
            .into_iter()
            .rfind(|step| step.checkpoint)
            .unwrap();
        (
            ThreadState::clone(&step.state),
            (!step.next.is_empty()).then(|| step.machine.clone()),
        )
    }
}

pub(crate) fn transcript(messages: &[Message]) -> Vec<String> {
    messages
        .iter()
        .map(|message| format!("{}:{}", message.type_name(), message.content.text()))
        .collect()
}

/// Runs an agent to its end.
pub(crate) async fn run(
    agent: &Arc<dyn Agent>,
    input: AgentInput,
    change: impl FnOnce(&mut RunContext),
) -> RunOutput {
    let (mut ctx, events) = context(1_000_000 * input.state.messages().len() as u64);
    change(&mut ctx);
    let mut stream = agent.stream(input, ctx, events);
    let mut output = RunOutput {
        events: vec![],
        outcome: Err(AgentError::EmptyInput),
    };
    while let Some(event) = stream.next().await {
        match event {
            Ok(AgentEvent::Done(outcome)) => output.outcome = Ok(outcome),
            Ok(event) => output.events.push(event),
            Err(error) => output.outcome = Err(error),
        }
    }
    output
}

/// Runs an agent with a new user message.
pub(crate) async fn ask(agent: &Arc<dyn Agent>, text: &str) -> RunOutput {
    run(agent, fresh(state_of([Message::human(text)])), |_| {}).await
}

pub(crate) fn fresh(state: ThreadState) -> AgentInput {
    AgentInput {
        state,
        start: AgentStart::Fresh,
        machine: None,
        step: 0,
        nested: NestedStates::new(),
    }
}

/// Input that resumes from the last checkpoint of `output`.
pub(crate) fn resume_input(output: &RunOutput, start: AgentStart) -> AgentInput {
    let (state, machine) = output.saved();
    AgentInput {
        state,
        start,
        machine,
        step: 0,
        nested: NestedStates::new(),
    }
}

/// Arguments of a tool that takes one text.
pub(crate) fn text(text: &str) -> Value {
    json!({ "text": text })
}
