//! Traits of an adapter and of its factory.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::error::FlowError;
use super::invocation::{AgentInvocation, InvocationId, SessionContext, SessionId};
use super::result::AgentTurnResult;
use crate::compiled::EffectiveAgent;
use deerflow_core::actor_context::ActorContext;
use deerflow_runtime::agent::{AgentEvent, RunContext};
use deerflow_runtime::checkpoint::NestedState;

/// Version of this contract. Adapters of another major version are refused.
pub const CONTRACT_VERSION: &str = "1.0";

/// Ability of an adapter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Capability {
    /// Sends deltas.
    Streaming,
    /// Returns structured output.
    StructuredOutput,
    /// Calls tools.
    ToolCalls,
    /// Proposes delegation.
    DelegationProposal,
    /// Stops at questions and resumes.
    InterruptResume,
    /// Stores the turns of a session.
    MultiTurnSession,
    /// Reads images.
    VisionInput,
    /// Executes code.
    CodeInterpreter,
}

/// Description of an adapter kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AdapterMetadata {
    /// Kind.
    pub adapter_kind: String,
    /// Name for people.
    pub display_name: String,
    /// Version of the adapter.
    pub adapter_version: String,
    /// Version of the contract that it implements.
    pub contract_version: String,
    /// Abilities.
    pub supported_capabilities: Vec<Capability>,
    /// Limitations, for people.
    pub limitations: Vec<String>,
}

/// Problem of an adapter's configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfigFinding {
    /// Stable code, such as `missing_base_url`.
    pub code: String,
    /// Key of the configuration.
    pub key: String,
    /// Message for people; never contains the value of a secret.
    pub message: String,
}

/// Fragment of a turn's output.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TurnDelta {
    /// Next part of the text.
    pub text: String,
    /// Next part of the reasoning.
    pub reasoning: String,
}

/// Receives the output of a turn while it runs. Never waits.
pub trait DeltaSink: Send + Sync {
    /// Emits a fragment of text or reasoning.
    fn delta(&self, delta: TurnDelta);

    /// Emits an event of a nested agent. The default discards it.
    fn event(&self, _event: AgentEvent) {}
}

/// Facilities of the run that a turn may use; absent when a flow runs outside of the runtime.
#[derive(Debug, Clone, Default)]
pub struct TurnRuntime {
    /// Context of the run.
    pub context: Option<RunContext>,
    /// `node:task id` of the turn's node.
    pub namespace: String,
    /// State of the nested agent of this turn that an earlier attempt saved. A turn in a sub-flow has
    /// none.
    pub nested: Option<Arc<NestedState>>,
    /// Time at which the limit of the turn passes. The adapter then returns status `timed_out`.
    pub deadline: Option<Instant>,
}

/// Executes the turns of one agent in one run. Sessions are created before the first turn and
/// disposed at every end of the run; turns of a session never overlap.
#[async_trait]
pub trait AgentAdapter: Send + Sync + fmt::Debug {
    /// Creates a session.
    async fn create_session(&self, context: SessionContext) -> Result<SessionId, FlowError>;

    /// Executes a turn. Every failure is a result. `cancel` stops the turn; the engine then calls
    /// [`Self::abort`].
    async fn run_turn(
        &self,
        invocation: AgentInvocation,
        runtime: TurnRuntime,
        sink: &dyn DeltaSink,
        cancel: CancellationToken,
    ) -> AgentTurnResult;

    /// Aborts a turn at the other side, if that is possible.
    async fn abort(&self, invocation: &InvocationId) -> Result<(), FlowError>;

    /// Disposes a session. A session that does not exist is disposed.
    async fn dispose(&self, session: &SessionId) -> Result<(), FlowError>;

    /// Returns what a repetition of a turn does.
    fn effect(&self) -> TurnEffect {
        TurnEffect::Pure
    }

    /// Returns `true` if the other side stores the turns of a session; else the engine sends them
    /// with each turn.
    fn stores_history(&self) -> bool {
        false
    }
}

/// Effect of a repetition of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TurnEffect {
    /// Repeats no side effect.
    Pure,
    /// The other side recognizes the invocation id and executes it once.
    Keyed,
    /// May execute a side effect twice.
    Unsafe,
}

/// Inputs from which a factory builds an adapter.
#[derive(Debug, Clone)]
pub struct AdapterContext {
    /// Name of the flow.
    pub flow_name: String,
    /// `runtime.adapterConfig` of the flow for this kind.
    pub flow_config: Map<String, Value>,
    /// Agent.
    pub agent: Arc<EffectiveAgent>,
    /// Actor that the run acts for.
    pub actor: ActorContext,
}

/// Builds the adapters of one kind: one instance per run and agent.
#[async_trait]
pub trait AdapterFactory: Send + Sync + fmt::Debug {
    /// Returns the description, with the kind.
    fn metadata(&self) -> &AdapterMetadata;

    /// Returns other names of the kind.
    fn aliases(&self) -> &[&str] {
        &[]
    }

    /// Returns the problems of the configuration of an agent.
    fn validate_config(
        &self,
        _flow_config: &Map<String, Value>,
        _agent: &EffectiveAgent,
    ) -> Vec<ConfigFinding> {
        Vec::new()
    }

    /// Returns `true` if turns without a time limit get the default one.
    fn has_default_turn_limit(&self) -> bool {
        true
    }

    /// Builds an adapter.
    async fn create(&self, context: AdapterContext) -> Result<Arc<dyn AgentAdapter>, FlowError>;
}
