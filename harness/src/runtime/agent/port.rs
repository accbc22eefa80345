//! The port of an agent, what it is given, and how an assistant's name leads to one.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use futures_util::Stream;
use futures_util::future::BoxFuture;
use serde_json::{Map, Value};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::call_log::CallLog;
use super::event::{AgentEvent, AgentOutcome};
use super::graph::AgentGraph;
use crate::clock::Clock;
use crate::ids::{IdSource, RunId, ThreadId};
use crate::messages::Message;
use crate::runtime::actor_context::ActorContext;
use crate::runtime::checkpoint::NestedStates;
use crate::runtime::runs::{NodeSelector, Visit};
use crate::state::{StateError, StateUpdate, ThreadState};

/// Why an agent could not go on. The run fails with it.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum AgentError {
    /// More super-steps than allowed.
    #[error("recursion limit of {0} reached without hitting a stop condition")]
    RecursionLimit(u64),
    /// A step wrote what cannot be reduced.
    #[error(transparent)]
    State(#[from] StateError),
    /// The model provider failed in a way that no answer can stand in for.
    #[error("{message}")]
    Model {
        /// In the user's words.
        message: String,
    },
    /// A tool or middleware ended the run on purpose.
    #[error("{message}")]
    Ended {
        /// The class clients see as the error's name.
        name: String,
        /// Why.
        message: String,
    },
    /// There is no input and nothing is due.
    #[error("the run has no input and the thread has nothing to continue")]
    EmptyInput,
    /// A command names a node that the agent does not have.
    #[error("cannot go to {0:?}: the agent has no such node")]
    UnknownNode(String),
    /// A saved machine that this agent does not understand.
    #[error("the thread cannot be resumed: {0}")]
    Resume(String),
}

impl AgentError {
    /// The class name that clients see, as the recorded servers name it.
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

/// How a run begins on the state it found.
#[derive(Debug, Clone, PartialEq)]
pub enum AgentStart {
    /// With something new, which is in the state already; whatever was due is dropped.
    Fresh,
    /// Where the thread stopped, with answers to its questions.
    Resume(Value),
    /// Where the thread stopped.
    Continue,
    /// At these nodes, one after the other, then on from the last; answers to open questions are heeded before.
    Goto {
        /// Answers, if there are some.
        resume: Option<Value>,
        /// The nodes.
        visits: Vec<Visit>,
    },
}

/// The state a run starts from, and how.
#[derive(Debug, Clone)]
pub struct AgentInput {
    /// The thread's state with the run's input already reduced into it.
    pub state: ThreadState,
    /// How to begin.
    pub start: AgentStart,
    /// Where the machine stood at the checkpoint, if it was not done.
    pub machine: Option<Value>,
    /// The thread's super-steps so far: the first task belongs to the next one.
    pub step: i64,
    /// Agents that calls which are due have set to work.
    pub nested: NestedStates,
}

/// Facts of a run that an agent may write into the message the run begins with.
#[derive(Debug, Clone)]
pub struct InputFacts {
    /// The run.
    pub run_id: RunId,
    /// The time at which the run took its input.
    pub now: DateTime<Utc>,
}

/// What an agent may know about its run and use while it works.
#[derive(Debug, Clone)]
pub struct RunContext {
    /// The thread.
    pub thread_id: ThreadId,
    /// The run.
    pub run_id: RunId,
    /// For whom.
    pub actor: ActorContext,
    /// `config.configurable` and `context`, merged; context wins.
    pub options: Arc<Map<String, Value>>,
    /// `config.tags`.
    pub tags: Vec<String>,
    /// The calls that the agent is inside of, as `node:task id` from outside in; empty for the run's own.
    pub namespace: Arc<str>,
    /// Most super-steps.
    pub recursion_limit: u64,
    /// Stop before these nodes.
    pub interrupt_before: NodeSelector,
    /// Stop after these nodes.
    pub interrupt_after: NodeSelector,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Ids.
    pub ids: Arc<dyn IdSource>,
    /// Where events go.
    pub sink: EventSink,
    /// Where calls are written down that must not be repeated blindly.
    pub calls: CallLog,
    /// Cancelled when the run is; children hang theirs below it.
    pub token: CancellationToken,
}

impl RunContext {
    /// An option as text.
    pub fn option_str(&self, key: &str) -> Option<&str> {
        self.options.get(key).and_then(Value::as_str)
    }

    /// An option as a truth value.
    pub fn option_bool(&self, key: &str) -> Option<bool> {
        self.options.get(key).and_then(Value::as_bool)
    }
}

/// Takes events from the driver and from tools that run beside it. Cloning is cheap; sending never waits.
#[derive(Debug, Clone)]
pub struct EventSink(mpsc::UnboundedSender<AgentEvent>);

impl EventSink {
    /// A sink and the end that reads from it.
    pub fn channel() -> (Self, mpsc::UnboundedReceiver<AgentEvent>) {
        let (sender, receiver) = mpsc::unbounded_channel();
        (Self(sender), receiver)
    }

    /// Says something. Silently dropped when nobody listens any more: the run is over then.
    pub fn emit(&self, event: AgentEvent) {
        let _gone = self.0.send(event);
    }
}

/// The events of one run of an agent. Dropping it stops the agent at its current await.
pub struct AgentStream {
    events: mpsc::UnboundedReceiver<AgentEvent>,
    driver: Option<BoxFuture<'static, Result<AgentOutcome, AgentError>>>,
    ended: Option<Result<AgentOutcome, AgentError>>,
}

impl AgentStream {
    /// Joins a driver with the sink it and its tools write to. The driver is polled by whoever polls the stream: no task, no
    /// lock, and no event is lost between them.
    pub fn new(
        events: mpsc::UnboundedReceiver<AgentEvent>,
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
            if let Poll::Ready(Some(event)) = self.events.poll_recv(cx) {
                return Poll::Ready(Some(Ok(event)));
            }
            let Some(driver) = self.driver.as_mut() else {
                // A task that has used up its turn hears from `poll_recv` that there is nothing; what is there must not be lost.
                if let Ok(event) = self.events.try_recv() {
                    return Poll::Ready(Some(Ok(event)));
                }
                return Poll::Ready(self.ended.take().map(|ended| ended.map(AgentEvent::Done)));
            };
            match driver.as_mut().poll(cx) {
                Poll::Ready(ended) => {
                    self.driver = None;
                    self.ended = Some(ended);
                }
                // The driver may have emitted and then gone to sleep on something else.
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

/// An agent. The runtime feeds it a state, streams what it says, saves what it reaches, and drops it to cancel it.
pub trait Agent: Send + Sync + fmt::Debug {
    /// Begins a run. `events` is the reading end of `ctx.sink`.
    fn stream(
        &self,
        input: AgentInput,
        ctx: RunContext,
        events: mpsc::UnboundedReceiver<AgentEvent>,
    ) -> AgentStream;

    /// What a run that was cut off should still write: by default the partial answer. The state is the one last reached.
    fn settle(&self, _state: &ThreadState, partial: Option<Message>) -> StateUpdate {
        StateUpdate::messages(partial)
    }

    /// Completes the user's message that a run begins with, before its first checkpoint, so that the thread's log holds it once.
    /// `None` leaves the message as it is.
    fn complete_input(&self, _message: &Message, _facts: &InputFacts) -> Option<Message> {
        None
    }

    /// The nodes clients may set breakpoints on.
    fn nodes(&self) -> Vec<String>;

    /// The position of a run that is to go to these nodes, one after the other, as a checkpoint keeps it. `seed` makes the ids of
    /// its tasks its own. `None` where the state alone says what is due.
    fn parked(&self, _visits: Vec<Visit>, _seed: Uuid) -> Option<Value> {
        None
    }

    /// The nodes and the ways between them, for clients that draw the agent.
    fn graph(&self) -> AgentGraph {
        AgentGraph::chain(self.nodes())
    }
}

/// No assistant of that name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UnknownAssistant {
    /// Not a name or id of any assistant.
    #[error("assistant {0:?} not found")]
    NotFound(String),
    /// The text is no assistant name at all.
    #[error("assistant name {0:?} must match [A-Za-z0-9_-]{{1,64}}")]
    InvalidName(String),
    /// The run asks for a model that is not configured.
    #[error("model {0:?} is not in the configured model allowlist")]
    UnknownModel(String),
    /// The assistant exists but cannot work as it is configured.
    #[error("assistant {name:?} cannot start: {reason}")]
    Unusable {
        /// The assistant.
        name: String,
        /// What to mend.
        reason: String,
    },
}

/// What clients may know about an assistant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AssistantInfo {
    /// Its name, which is also the graph's.
    pub name: String,
    /// One line about it.
    pub description: Option<String>,
}

/// Leads from an assistant's name and a run's options to an agent, assembled once and shared.
#[async_trait]
pub trait AgentResolver: Send + Sync + fmt::Debug {
    /// The agent. `assistant` is a name; the gateway has turned ids into names before.
    async fn resolve(
        &self,
        assistant: &str,
        options: &Map<String, Value>,
    ) -> Result<Arc<dyn Agent>, UnknownAssistant>;

    /// All assistants, in a stable order.
    async fn list(&self) -> Vec<AssistantInfo>;

    /// Lets go of agents that were put together before, where any are kept; runs under way keep theirs.
    fn forget(&self) {}
}

#[cfg(test)]
mod tests {
    use futures_util::{FutureExt, StreamExt};
    use serde_json::json;

    use super::*;
    use crate::runtime::agent::StopKind;

    #[tokio::test]
    async fn all_that_was_said_in_one_breath_comes_before_the_end() {
        let (sink, events) = EventSink::channel();
        let driver = async move {
            (0..1_000).for_each(|at| sink.emit(AgentEvent::Custom(json!(at))));
            Ok(AgentOutcome {
                kind: StopKind::Completed,
                stop_reason: None,
            })
        };
        let said: Vec<_> = AgentStream::new(events, driver.boxed()).collect().await;
        assert_eq!(said.len(), 1_001);
        assert!(matches!(said.last(), Some(Ok(AgentEvent::Done(_)))));
    }
}
