//! The agent that a node is bound to, after assets and definitions are merged.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::schema::TurnMode;
use crate::schema::{
    Budgets, MemoryPolicy, ModelProfile, OutputKind, SubagentPolicy, Timeouts, ToolPolicy,
};

/// Agent of a node: an agent definition, or an agent asset merged over one.
#[derive(Debug, Clone, PartialEq)]
pub struct EffectiveAgent {
    /// Id.
    pub agent_id: String,
    /// Kind as the registry names it; aliases are resolved.
    pub adapter_kind: String,
    /// Model and system prompt.
    pub model_profile: ModelProfile,
    /// Tools.
    pub tool_policy: ToolPolicy,
    /// Earlier messages that it receives.
    pub memory_policy: MemoryPolicy,
    /// Delegation.
    pub subagent_policy: SubagentPolicy,
    /// Time limits that the document states.
    pub timeouts: Timeouts,
    /// Budgets per run.
    pub budgets: Budgets,
    /// Settings of the adapter, agent over flow.
    pub adapter_config: Map<String, Value>,
    /// Kind of the output, if stated.
    pub output_kind: Option<OutputKind>,
    /// Turn mode of the asset.
    pub turn_mode: Option<TurnMode>,
    /// Tools that the asset names.
    pub tools: Vec<String>,
    /// Prompt of the asset. With an asset, the system prompt of the definition is not used.
    pub asset: Option<AssetPrompt>,
}

/// Prompt parts of an agent asset, each once, in the order of the prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AssetPrompt {
    /// Global system prompt, unless the asset excludes it.
    pub global: Option<AssetText>,
    /// Instructions.
    pub instructions: Vec<AssetText>,
    /// Skills.
    pub skills: Vec<AssetText>,
    /// Body of the agent file.
    pub body: AssetText,
}

/// Text of an asset file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AssetText {
    /// Name for people.
    pub label: String,
    /// Path in the project.
    pub source_path: Option<String>,
    /// Text.
    pub text: Arc<str>,
}
