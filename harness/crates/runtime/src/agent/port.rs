//! Port of an agent and its inputs.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use chrono::{DateTime, Utc};
use futures_util::Stream;
use futures_util::future::BoxFuture;
use serde_json::{Map, Value};
use tokio::task::coop;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::call_log::CallLog;
use super::event::{AgentEvent, AgentOutcome};
use super::graph::AgentGraph;
use super::input::{InputError, known_channels};
use super::node_write::{NodeWrite, NodeWritten};
use super::run_queue::{QueueReceiver, QueueSender, run_queue};
use super::schema_part::SchemaPart;
use crate::checkpoint::NestedStates;
use crate::definition::{GotoTarget, NodeSelector};
use deerflow_core::actor_context::ActorContext;
use deerflow_core::clock::Clock;
use deerflow_core::ids::{IdSource, RunId, ThreadId};
use deerflow_core::messages::Message;
use deerflow_core::state::{Channels, StateError, StateUpdate, ThreadState};

/// Error of an agent. The run fails with it.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum AgentError {
    /// More super-steps than the limit allows.
    #[error("recursion limit of {0} reached without hitting a stop condition")]
    RecursionLimit(u64),
    /// The update of a step cannot be reduced into the state.
    #[error(transparent)]
    State(#[from] StateError),
    /// The model provider failed and no fallback answer is possible.
    #[error("{message}")]
    Model {
        /// Message for the user.
        message: String,
    },
    /// A tool or middleware ended the run on purpose.
    #[error("{message}")]
    Ended {
        /// Class that clients see as the error's name.
        name: String,
        /// Reason.
        message: String,
    },
    /// There is no input and no pending task.
    #[error("the run has no input and the thread has no pending tasks")]
    EmptyInput,
    /// A command names a node that the agent does not have.
    #[error("cannot go to {0:?}: the agent has no such node")]
    UnknownNode(String),
    /// A stored state machine that this agent cannot resume.
    #[error("the thread cannot be resumed: {0}")]
    Resume(String),
}

impl AgentError {
    /// Returns the class name that clients see. For errors of LangGraph it is LangGraph's name.
    pub fn name(&self) -> &str {
        match self {
            Self::RecursionLimit(_) => "GraphRecursionError",
            Self::State(_) | Self::UnknownNode(_) => "InvalidUpdateError",
            Self::Model { .. } => "ModelError",
            Self::Ended { name, .. } => name,
            Self::EmptyInput => "EmptyInputError",
            Self::Resume(_) => "ResumeError",
        }
    }
}

/// Starting mode of an agent on the loaded state.
#[derive(Debug, Clone, PartialEq)]
pub enum AgentStart {
    /// Starts with new input, which is already in the state. Pending tasks are discarded.
    Fresh,
    /// Continues at the interrupt, with answers to its questions.
    Resume(Value),
    /// Continues at the pending tasks of the thread.
    Continue,
    /// Executes these nodes one after the other, and continues after the last one. Answers to open
    /// interrupts are applied first.
    Goto {
        /// Answers, if any.
        resume: Option<Value>,
        /// Nodes to execute.
        visits: Vec<GotoTarget>,
    },
}

/// State that a run starts from, and how it starts.
#[derive(Debug, Clone)]
pub struct AgentInput {
    /// State of the thread with the run's input already reduced into it.
    pub state: ThreadState,
    /// Starting mode.
    pub start: AgentStart,
    /// State machine of the agent at the checkpoint, if the agent had not completed.
    pub machine: Option<Value>,
    /// Number of super-steps of the thread so far; the first task belongs to the next one.
    pub step: i64,
    /// States of agents inside pending calls.
    pub nested: NestedStates,
}

/// Facts of a run that an agent may write into its input message.
#[derive(Debug, Clone)]
pub struct InputFacts {
    /// Id of the run.
    pub run_id: RunId,
    /// Time at which the run took its input.
    pub now: DateTime<Utc>,
}

/// Context of a run: what an agent may know about it and use.
#[derive(Debug, Clone)]
pub struct RunContext {
    /// Id of the thread.
    pub thread_id: ThreadId,
    /// Id of the run.
    pub run_id: RunId,
    /// Actor that the run acts for.
    pub actor: ActorContext,
    /// `config.configurable` and `context` merged; `context` takes precedence. In the context of a
    /// run, [`RunContext::ID_OPTIONS`] are set.
    pub options: Arc<Map<String, Value>>,
    /// `config.tags`.
    pub tags: Vec<String>,
    /// Calls that contain the agent, as `node:task id` from outside in; empty for the run's own
    /// agent.
    pub namespace: Arc<str>,
    /// Maximum number of super-steps.
    pub recursion_limit: u64,
    /// Nodes to stop before.
    pub interrupt_before: NodeSelector,
    /// Nodes to stop after.
    pub interrupt_after: NodeSelector,
    /// Clock of the runtime.
    pub clock: Arc<dyn Clock>,
    /// Source of ids.
    pub ids: Arc<dyn IdSource>,
    /// Sink of the agent's events.
    pub sink: EventSink,
    /// Log of calls. After a takeover, the agent reads from it which calls may be repeated.
    pub calls: CallLog,
    /// Cancelled together with the run; nested work uses child tokens.
    pub token: CancellationToken,
}

impl RunContext {
    /// Options that hold the ids of a run: its thread, the run itself, its assistant and its graph.
    pub const ID_OPTIONS: [&'static str; 4] = ["thread_id", "run_id", "assistant_id", "graph_id"];

    /// Returns a text option.
    pub fn option_str(&self, key: &str) -> Option<&str> {
        self.options.get(key).and_then(Value::as_str)
    }

    /// Returns a boolean option.
    pub fn option_bool(&self, key: &str) -> Option<bool> {
        self.options.get(key).and_then(Value::as_bool)
    }
}

/// Receives events of the driver and of tools that run concurrently with it. Clones are cheap;
/// sending never waits.
#[derive(Debug, Clone)]
pub struct EventSink(QueueSender<AgentEvent>);

/// Receiver of the events that an [`EventSink`] and its clones emit.
pub type EventReceiver = QueueReceiver<AgentEvent>;

impl EventSink {
    /// Creates a sink and its receiver.
    pub fn channel() -> (Self, EventReceiver) {
        let (sender, receiver) = run_queue();
        (Self(sender), receiver)
    }

    /// Emits an event. The event is discarded if the run is over and the receiver no longer exists.
    pub fn emit(&self, event: AgentEvent) {
        self.0.send(event);
    }
}

/// Events of one run of an agent. Dropping the stream stops the agent at its current await.
pub struct AgentStream {
    events: EventReceiver,
    driver: Option<BoxFuture<'static, Result<AgentOutcome, AgentError>>>,
    ended: Option<Result<AgentOutcome, AgentError>>,
}

impl AgentStream {
    /// Joins a driver with the sink that it and its tools write to. The driver is polled by the
    /// stream's consumer: no extra task, no lock, and no event is lost between the two.
    pub fn new(
        events: EventReceiver,
        driver: BoxFuture<'static, Result<AgentOutcome, AgentError>>,
    ) -> Self {
        Self {
            events,
            driver: Some(driver),
            ended: None,
        }
    }
}

impl Stream for AgentStream {
    type Item = Result<AgentEvent, AgentError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            let progress = ready!(coop::poll_proceed(cx));
            // The driver's own events must not wake the task that polls it.
            if let Some(event) = self.events.take_unwatched() {
                progress.made_progress();
                return Poll::Ready(Some(Ok(event)));
            }
            // The guard restores the task's budget when it is dropped, which would undo what the
            // driver uses.
            drop(progress);
            let Some(driver) = self.driver.as_mut() else {
                return Poll::Ready(self.ended.take().map(|ended| ended.map(AgentEvent::Done)));
            };
            match driver.as_mut().poll(cx) {
                Poll::Ready(ended) => {
                    self.driver = None;
                    self.ended = Some(ended);
                }
                // The driver may have emitted an event before it returned pending, and its tools
                // emit further ones from other tasks.
                Poll::Pending => match self.events.poll_recv(cx) {
                    Poll::Ready(Some(event)) => return Poll::Ready(Some(Ok(event))),
                    _ => return Poll::Pending,
                },
            }
        }
    }
}

impl fmt::Debug for AgentStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentStream").finish_non_exhaustive()
    }
}

/// An agent. The runtime passes it a state, streams its events and stores its checkpoints. To
/// cancel the agent, the runtime drops the stream.
///
/// ```
/// use deerflow_runtime::agent::{
///     Agent, AgentEvent, AgentInput, AgentOutcome, AgentStream, EventReceiver, RunContext, StopKind,
/// };
/// use futures_util::FutureExt;
///
/// /// Agent that emits the number of messages and completes.
/// #[derive(Debug)]
/// struct Counter;
///
/// impl Agent for Counter {
///     fn stream(
///         &self,
///         input: AgentInput,
///         ctx: RunContext,
///         events: EventReceiver,
///     ) -> AgentStream {
///         let driver = async move {
///             ctx.sink.emit(AgentEvent::Custom(input.state.messages().len().into()));
///             Ok(AgentOutcome { kind: StopKind::Completed, stop_reason: None })
///         };
///         AgentStream::new(events, driver.boxed())
///     }
///
///     fn nodes(&self) -> Vec<String> {
///         vec!["count".to_owned()]
///     }
/// }
/// ```
pub trait Agent: Send + Sync + fmt::Debug {
    /// Starts a run. `events` is the receiver of `ctx.sink`.
    fn stream(&self, input: AgentInput, ctx: RunContext, events: EventReceiver) -> AgentStream;

    /// Returns the channels of the agent's states, with their reducers; by default the lead agent's.
    /// The runtime reduces the input of a run, and clients' updates of a thread, by them; the state
    /// in [`AgentInput`] reduces the agent's own updates by them.
    fn channels(&self) -> Channels {
        Channels::lead()
    }

    /// Converts the `input` of a client's request to channel values, with `messages` in any form
    /// that a client may send. Called before the run is stored. Must be pure: a repeated request is
    /// converted again. By default the keys are channels, and others are an error.
    fn read_input(&self, input: Map<String, Value>) -> Result<Map<String, Value>, InputError> {
        known_channels(input, &self.channels())
    }

    /// Returns the update that is written when a run is interrupted: by default the partial answer.
    /// `state` is the last state of the run.
    fn settle(&self, _state: &ThreadState, partial: Option<Message>) -> StateUpdate {
        StateUpdate::messages(partial)
    }

    /// Returns the update that is written when a run is interrupted, from all partial messages: the
    /// streamed ones that no state of the run has, at most one per task, in the order of their
    /// newest fragments. By default [`settle`](Self::settle) decides, with the newest of
    /// [`partial_answers`](Self::partial_answers).
    fn settle_all(&self, state: &ThreadState, partial: Vec<Message>) -> StateUpdate {
        let newest = self.partial_answers(&partial).last().cloned();
        self.settle(state, newest)
    }

    /// Selects the partial messages that the transcript of an interrupted run has as incomplete
    /// answers; by default the newest. An agent whose messages are no part of the conversation
    /// selects none.
    fn partial_answers<'a>(&self, partial: &'a [Message]) -> &'a [Message] {
        &partial[partial.len().saturating_sub(1)..]
    }

    /// Returns the user's message with additions of the agent, or `None` if there are none. Called
    /// before the first checkpoint, so that the thread's log contains the message once.
    fn complete_input(&self, _message: &Message, _facts: &InputFacts) -> Option<Message> {
        None
    }

    /// Returns the time that a cancelled run gives the agent to stop work at other systems, after
    /// [`RunContext::token`] is cancelled. By default none: the runtime drops the stream at once.
    fn stop_grace(&self) -> Duration {
        Duration::ZERO
    }

    /// Returns `true` if each task that the agent reports has a time limit of its own. The limit of
    /// silence then does not apply while a task is pending.
    fn limits_tasks(&self) -> bool {
        false
    }

    /// Returns the nodes on which clients may set breakpoints.
    fn nodes(&self) -> Vec<String>;

    /// Returns the stored state machine of a run that will execute these nodes one after the other.
    /// `seed` makes the ids of its tasks unique. `None` if the state alone determines the pending
    /// tasks.
    fn parked(&self, _visits: Vec<GotoTarget>, _seed: Uuid) -> Option<Value> {
        None
    }

    /// Converts an update that a client writes as a node. By default `None`: the values are those of
    /// channels, and the state determines the pending tasks.
    ///
    /// # Errors
    /// The node does not accept the values, or it has no edge for them.
    fn write_as(&self, _write: NodeWrite<'_>) -> Result<Option<NodeWritten>, InputError> {
        Ok(None)
    }

    /// Returns the JSON schemas of the values besides `messages`, by name. By default `None`: the
    /// channels describe them.
    fn properties(&self, _part: SchemaPart) -> Option<Map<String, Value>> {
        None
    }

    /// Returns the nodes and edges, for clients that draw the agent.
    fn graph(&self) -> AgentGraph {
        AgentGraph::chain(self.nodes())
    }
}

#[cfg(test)]
#[path = "port_tests.rs"]
mod tests;
