//! Agent definitions of a flow.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Definition of an agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentDef {
    /// Id, unique in the flow.
    pub agent_id: String,
    /// Kind of the adapter that executes its turns.
    pub adapter_kind: String,
    /// Model and prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_profile: Option<ModelProfile>,
    /// Tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_policy: Option<ToolPolicy>,
    /// Earlier messages that the agent receives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_policy: Option<MemoryPolicy>,
    /// Delegation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subagent_policy: Option<SubagentPolicy>,
    /// Time limits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeouts: Option<Timeouts>,
    /// Budgets per run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budgets: Option<Budgets>,
    /// Settings of the adapter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adapter_config: Option<Map<String, Value>>,
    /// Kind of the output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_kind: Option<OutputKind>,
    /// Unknown fields.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// Model and prompt of an agent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelProfile {
    /// Name of the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// System prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// Temperature, 0 to 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Maximum tokens of an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// Unknown fields.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// Tools of an agent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolPolicy {
    /// Allowed capabilities or tools; all if empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allowed_capabilities: Vec<String>,
    /// Tools that the agent may not call.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocked_tools: Vec<String>,
    /// Calls that need approval; destructive ones if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval_requirement: Option<Approval>,
    /// Unknown fields.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// Calls that need approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Approval {
    /// None.
    Never,
    /// All.
    Always,
    /// Those that change or remove data.
    DestructiveOnly,
}

/// Earlier messages that an agent receives.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MemoryPolicy {
    /// Scopes that the agent sees; `run` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub visible_scopes: Option<Vec<MemoryScope>>,
    /// Reserved.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub writable_scopes: Vec<MemoryScope>,
    /// Maximum messages; 50 if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_items: Option<u64>,
    /// Maximum bytes of text; 64 KiB if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_bytes: Option<u64>,
    /// Unknown fields.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// Scope of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MemoryScope {
    /// Earlier messages of the thread.
    Session,
    /// Turns of the agent in this run.
    Run,
    /// Reserved.
    Node,
    /// Reserved.
    AgentLocal,
    /// Reserved.
    Artifacts,
}

/// Delegation to other agents.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SubagentPolicy {
    /// Agents that may be asked for; any if empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allowed_agents: Vec<String>,
    /// Modes of delegation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub switch_modes: Vec<DelegationMode>,
    /// Part of the result that is returned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub return_strategy: Option<ReturnStrategy>,
    /// Maximum delegations per run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_delegations: Option<u64>,
    /// Unknown fields.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// Mode of delegation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DelegationMode {
    /// The flow demands it.
    FlowForced,
    /// A policy decides.
    PolicyResolved,
    /// The agent proposes it.
    AgentSuggested,
}

/// Part of a delegated result that is returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReturnStrategy {
    /// Summary.
    SummaryOnly,
    /// All events.
    FullTrace,
    /// Structured output.
    StructuredOutput,
}

/// Time limits of an agent, in milliseconds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Timeouts {
    /// Limit of a turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn_ms: Option<u64>,
    /// Age at which a session is replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_ms: Option<u64>,
    /// Unknown fields.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// Budgets; absent ones do not limit.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Budgets {
    /// Input and output tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// Cost in US dollars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_cost_usd: Option<f64>,
    /// Turns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_steps: Option<u64>,
    /// Milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_wall_clock_ms: Option<u64>,
    /// Unknown fields.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// Kind of an agent's output; also the name of its output port, except for `text`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OutputKind {
    /// Text.
    Text,
    /// Plan.
    Plan,
    /// Evaluation.
    Score,
    /// Code.
    Code,
    /// Judgement.
    Judge,
    /// Review.
    Review,
    /// Artifact.
    Artifact,
    /// Decision.
    Decision,
}
