//! Ports, options, start and end of a run of a flow.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use deerflow_core::actor_context::ActorContext;
use deerflow_core::clock::Clock;
use deerflow_core::ids::IdSource;
use deerflow_core::messages::Message;
use deerflow_runtime::agent::{AgentEvent, RunContext};
use deerflow_runtime::checkpoint::NestedStates;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use super::history::Histories;
use crate::adapter::{AdapterRegistry, FlowError, InvocationId, TurnEffect, TurnMessage};
use crate::compiled::{CompiledFlow, LoaderKind, NodeIndex};
use crate::events::FlowEventSink;
use crate::machine::{FlowMachine, Question, RunBounds, RunData, RunInput, SessionRecord};

/// Source of the flows that `control.subflow` names.
#[async_trait]
pub trait FlowSource: Send + Sync + fmt::Debug {
    /// Returns a flow. `None` if the actor has no such flow.
    async fn get(&self, flow_id: &str) -> Result<Option<Arc<CompiledFlow>>, FlowError>;
}

/// Request of a loader node.
#[derive(Debug)]
pub struct LoadRequest<'a> {
    /// Node.
    pub node_id: &'a str,
    /// Kind.
    pub kind: LoaderKind,
    /// Settings.
    pub config: &'a Map<String, Value>,
    /// Input of the run.
    pub input: &'a RunInput,
    /// Actor.
    pub actor: &'a ActorContext,
    /// Context of the run; absent outside of the runtime.
    pub context: Option<&'a RunContext>,
}

/// Reads documents and files for nodes.
#[async_trait]
pub trait DocumentLoader: Send + Sync + fmt::Debug {
    /// Returns the value of port `data`. `None` if this loader does not serve the kind: the node
    /// then publishes the input of the run.
    async fn load(&self, request: LoadRequest<'_>) -> Result<Option<Value>, FlowError>;

    /// Returns the text of the file of a prompt node.
    async fn read_text(&self, path: &str, actor: &ActorContext) -> Result<String, FlowError>;
}

/// State of a run at a moment that may be saved.
#[derive(Debug)]
pub struct Progress<'a> {
    /// Flow.
    pub flow: &'a CompiledFlow,
    /// Scheduling state.
    pub machine: &'a FlowMachine,
    /// Values.
    pub data: &'a RunData,
    /// Nodes whose values changed since the last call.
    pub changed: &'a [NodeIndex],
}

/// A visit as clients see it: a task.
#[derive(Debug)]
pub struct VisitTask<'a> {
    /// Id, the same in every process.
    pub task_id: uuid::Uuid,
    /// Node id; `outer/inner` in a sub-flow.
    pub node_id: &'a str,
    /// Nodes that activated it.
    pub sources: &'a [NodeIndex],
    /// Values of input ports.
    pub input: &'a Map<String, Value>,
}

/// Observes a run and makes it durable. Hooks never wait, except [`Self::turn_starts`]. Hooks of a
/// sub-flow are those of tasks and turns only.
#[async_trait]
pub trait RunHooks: Send + Sync + fmt::Debug {
    /// Called when a superstep is complete and the next one is known.
    fn superstep(&self, _progress: Progress<'_>) {}

    /// Called when a visit of the current superstep has a result and others do not.
    fn amended(&self, _progress: Progress<'_>) {}

    /// Called when a visit begins.
    fn task_started(&self, _task: VisitTask<'_>) {}

    /// Called when the result of a visit is committed, or when the visit asks or fails. `asked` has
    /// its questions.
    fn task_ended(&self, _progress: Progress<'_>, _node: NodeIndex, _asked: &[Question]) {}

    /// Called when an agent's session was created or disposed.
    fn session_changed(&self, _agent_id: &str, _session: Option<&SessionRecord>) {}

    /// Called with the messages that a completed turn adds to the history of its session, and the
    /// number of messages that the history has from now on.
    fn turn_added(&self, _agent_id: &str, _turn: [Message; 2], _length: usize) {}

    /// Called with an event of an agent that runs inside of a node.
    fn agent_event(&self, _node_id: &str, _event: AgentEvent) {}

    /// Called before a turn whose repetition has effects.
    ///
    /// # Errors
    /// Refuses the turn, for example with `turn_outcome_unknown`, because an earlier process may
    /// have begun it. The engine then aborts the turn at the other side.
    async fn turn_starts(&self, _: &InvocationId, _: TurnEffect) -> Result<(), FlowError> {
        Ok(())
    }

    /// Called after such a turn.
    async fn turn_ends(&self, _: &InvocationId) {}
}

/// Hooks that do nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoHooks;

#[async_trait]
impl RunHooks for NoHooks {}

/// Receiver of events that discards them.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoEvents;

impl FlowEventSink for NoEvents {
    fn is_active(&self) -> bool {
        false
    }

    fn emit(&self, _: crate::events::FlowEvent) {}
}

/// Ports that runs use.
#[derive(Debug, Clone)]
pub struct FlowPorts {
    /// Adapter kinds.
    pub registry: Arc<AdapterRegistry>,
    /// Flows of `control.subflow`.
    pub flows: Option<Arc<dyn FlowSource>>,
    /// Loader of documents and files.
    pub loader: Option<Arc<dyn DocumentLoader>>,
    /// Receiver of events.
    pub events: Arc<dyn FlowEventSink>,
    /// Hooks.
    pub hooks: Arc<dyn RunHooks>,
    /// Wall clock.
    pub clock: Arc<dyn Clock>,
    /// Source of ids.
    pub ids: Arc<dyn IdSource>,
}

impl FlowPorts {
    /// Creates ports with a registry, the system's clock and ids, and nothing else.
    pub fn new(registry: AdapterRegistry) -> Self {
        Self {
            registry: Arc::new(registry),
            flows: None,
            loader: None,
            events: Arc::new(NoEvents),
            hooks: Arc::new(NoHooks),
            clock: Arc::new(deerflow_core::clock::SystemClock),
            ids: Arc::new(deerflow_core::ids::SystemIds::default()),
        }
    }
}

/// Options of a run.
#[derive(Debug, Clone)]
pub struct FlowOptions {
    /// Run.
    pub run_id: Arc<str>,
    /// Actor.
    pub actor: ActorContext,
    /// Supersteps and breakpoints.
    pub bounds: RunBounds,
    /// Cancels the run.
    pub cancel: CancellationToken,
    /// Maximum nodes at once, whatever the flow says.
    pub max_concurrency: usize,
    /// Maximum depth of sub-flows.
    pub max_subflow_depth: usize,
    /// Answers humans by the first option and reads no documents.
    pub dry_run: bool,
    /// Context of the run; absent outside of the runtime.
    pub context: Option<RunContext>,
    /// Earlier messages of the thread, for agents that see the scope `session`.
    pub thread_messages: Arc<[TurnMessage]>,
    /// Earlier turns of this flow's sessions.
    pub histories: Histories,
    /// States of the agents inside pending turns, by task id.
    pub nested: NestedStates,
}

impl FlowOptions {
    /// Creates options with the defaults.
    pub fn new(run_id: impl Into<Arc<str>>) -> Self {
        Self {
            run_id: run_id.into(),
            actor: ActorContext::default(),
            bounds: RunBounds::default(),
            cancel: CancellationToken::new(),
            max_concurrency: 16,
            max_subflow_depth: 5,
            dry_run: false,
            context: None,
            thread_messages: Arc::from([]),
            histories: Histories::default(),
            nested: NestedStates::new(),
        }
    }
}

/// Start of a run.
#[derive(Debug)]
pub enum FlowStart {
    /// At the start node, with task ids of its own.
    Fresh(RunInput),
    /// At the start node, with a machine that was created with
    /// [`FlowMachine::new`].
    Prepared(Box<FlowMachine>, Box<RunData>),
    /// A new run of a saved flow: `machine` has had [`FlowMachine::begin_run`].
    Resumed(Box<FlowMachine>, Box<RunData>),
    /// The same run in another process.
    TakenOver(Box<FlowMachine>, Box<RunData>),
}

/// End of a run, with its state.
#[derive(Debug)]
pub struct FlowEnd {
    /// Outcome.
    pub outcome: FlowOutcome,
    /// Scheduling state.
    pub machine: FlowMachine,
    /// Values.
    pub data: RunData,
    /// Turns of the sessions.
    pub histories: Histories,
}

/// Outcome of a run.
#[derive(Debug, Clone, PartialEq)]
pub enum FlowOutcome {
    /// Completed, with the result.
    Finished(Option<Value>),
    /// Failed.
    Failed(FlowError),
    /// Stopped at questions.
    Interrupted(Vec<Question>),
    /// Stopped at a breakpoint of this node.
    Breakpoint(NodeIndex),
    /// Cancelled.
    Cancelled,
}
