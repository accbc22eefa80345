//! Ports, options, start and end of a run of a flow.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use deerflow_core::actor_context::ActorContext;
use deerflow_core::clock::Clock;
use deerflow_core::ids::IdSource;
use deerflow_core::messages::Message;
use deerflow_runtime::agent::{AgentEvent, RunContext};
use deerflow_runtime::checkpoint::{NestedState, NestedStates};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use super::history::Histories;
use crate::adapter::{
    AdapterRegistry, AgentTurnResult, FlowError, InvocationId, TurnEffect, TurnMessage,
};
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

/// Request of a prompt node.
#[derive(Debug)]
pub struct TextRequest<'a> {
    /// Path below `/mnt/user-data`.
    pub path: &'a str,
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
    async fn read_text(&self, request: TextRequest<'_>) -> Result<String, FlowError>;
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

/// Sub-flow that begins, or continues after its state was saved.
#[derive(Debug)]
pub struct NestedFlow<'a> {
    /// Task of the enclosing flow that runs it.
    pub task_id: uuid::Uuid,
    /// Node of that task, in the enclosing flow.
    pub node_id: &'a str,
    /// Text before its nodes in events: `outer/`.
    pub prefix: &'a str,
    /// Flow.
    pub flow: &'a CompiledFlow,
    /// Scheduling state.
    pub machine: &'a FlowMachine,
    /// Values.
    pub channels: Map<String, Value>,
    /// Earlier turns of its sessions.
    pub histories: Histories,
}

/// Receivers of the events and the progress of a sub-flow.
#[derive(Debug)]
pub struct NestedPorts {
    /// Receiver of events.
    pub events: Arc<dyn FlowEventSink>,
    /// Hooks. Node ids are those of the sub-flow.
    pub hooks: Arc<dyn RunHooks>,
}

/// Saved state of a sub-flow.
#[derive(Debug)]
pub struct SavedLevel {
    /// Saved [`FlowMachine`].
    pub machine: Value,
    /// Values.
    pub channels: Map<String, Value>,
    /// Turns of its sessions.
    pub histories: Histories,
    /// `true` if this run saved it.
    pub is_same_run: bool,
}

/// Observes a run and makes it durable. Hooks never wait, except those of saved sessions,
/// [`Self::turn_starts`] and [`Self::turn_ends`]. A sub-flow has hooks of its own if its progress is
/// observed; else the run's, with node ids of the form `outer/inner`.
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

    /// Records a session whose turns have effects, before its first turn.
    ///
    /// # Errors
    /// Returns an error if the record cannot be written.
    async fn save_session(&self, _agent_id: &str, _: &SessionRecord) -> Result<(), FlowError> {
        Ok(())
    }

    /// Returns the session that an earlier process recorded for an agent of this run.
    ///
    /// # Errors
    /// Returns an error if the record cannot be read.
    async fn saved_session(&self, _agent_id: &str) -> Result<Option<SessionRecord>, FlowError> {
        Ok(None)
    }

    /// Called with the messages that a completed turn adds to the history of its session, and the
    /// number of messages that the history has from now on.
    fn turn_added(&self, _agent_id: &str, _turn: [Message; 2], _length: usize) {}

    /// Called when a sub-flow begins. Returns its receivers; `None` if its progress is not observed.
    fn nested(self: Arc<Self>, _level: NestedFlow<'_>) -> Option<NestedPorts> {
        None
    }

    /// Reads the state that the hooks of a sub-flow saved. `None` if it is unreadable.
    fn read_saved(&self, _state: &NestedState) -> Option<SavedLevel> {
        None
    }

    /// Called on the hooks of a sub-flow when it ends or stops.
    fn level_ended(&self) {}

    /// Called with an event of an agent that runs inside of a node.
    fn agent_event(&self, _node_id: &str, _event: AgentEvent) {}

    /// Called before a turn whose repetition has effects. A returned result, which an earlier
    /// process recorded, stands for the turn.
    ///
    /// # Errors
    /// Refuses the turn, for example with `turn_outcome_unknown`, because an earlier process may
    /// have begun it. The engine then aborts the turn at the other side.
    async fn turn_starts(
        &self,
        _: &InvocationId,
        _: TurnEffect,
    ) -> Result<Option<AgentTurnResult>, FlowError> {
        Ok(None)
    }

    /// Called with the result of such a turn.
    async fn turn_ends(&self, _: &InvocationId, _: &AgentTurnResult) {}
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
