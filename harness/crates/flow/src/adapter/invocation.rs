//! Input of an adapter for a session and for a turn.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::compiled::EffectiveAgent;
use crate::schema::TurnMode;

/// Id of a session, as the adapter gave it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SessionId(pub String);

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Id of an attempt of a turn: the same after a takeover, another for each retry.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct InvocationId(pub String);

impl fmt::Display for InvocationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Facts with which a session is created: one per run and agent.
#[derive(Debug, Clone)]
pub struct SessionContext {
    /// Run.
    pub run_id: String,
    /// Name of the flow.
    pub flow_name: String,
    /// Agent of the session.
    pub agent: Arc<EffectiveAgent>,
    /// Model of the turn that opens the session, if the node or agent names one.
    pub model: Option<String>,
    /// Temperature, likewise.
    pub temperature: Option<f64>,
}

/// One turn of an agent.
#[derive(Debug, Clone)]
pub struct AgentInvocation {
    /// Id of this attempt.
    pub invocation_id: InvocationId,
    /// Session of the run and agent.
    pub session_id: SessionId,
    /// Run.
    pub run_id: String,
    /// Name of the flow.
    pub flow_name: String,
    /// Node.
    pub node_id: String,
    /// Execution of the node in this run, from 1.
    pub visit: u64,
    /// Agent.
    pub agent: Arc<EffectiveAgent>,
    /// Mode.
    pub turn_mode: TurnMode,
    /// System part of the prompt; may be empty.
    pub system_prompt: String,
    /// User part of the prompt; never empty.
    pub user_prompt: String,
    /// Parts of the prompt with their sources.
    pub segments: Arc<[PromptSegment]>,
    /// Values of the input ports by port id.
    pub input: Map<String, Value>,
    /// Earlier turns of the session, for adapters whose other side stores none.
    pub messages: Arc<[TurnMessage]>,
    /// Expected structured output.
    pub expected_output: Option<ExpectedOutput>,
    /// Model: that of the node, else of the agent.
    pub model: Option<String>,
    /// Temperature: that of the node, else of the agent.
    pub temperature: Option<f64>,
    /// Maximum tokens: that of the node, else of the agent.
    pub max_tokens: Option<u64>,
    /// Answer to the question at which the earlier attempt of this turn stopped.
    pub answer: Option<Value>,
}

impl AgentInvocation {
    /// Reports whether the earlier turns already end with the prompt of this one, as those of a
    /// repeated turn do. Such a prompt is not sent twice.
    pub fn history_has_prompt(&self) -> bool {
        self.messages.last().is_some_and(|last| {
            last.role == TurnRole::User && last.content.trim() == self.user_prompt.trim()
        })
    }
}

/// Message of an earlier turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnMessage {
    /// Author.
    pub role: TurnRole,
    /// Text.
    pub content: String,
}

/// Author of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TurnRole {
    /// The flow or the user.
    User,
    /// The agent.
    Assistant,
}

/// Structured output that a turn shall return.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExpectedOutput {
    /// Name of the schema: `plan` or `score`.
    pub schema_ref: String,
    /// JSON Schema.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
}

/// Part of a prompt and its source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PromptSegment {
    /// Source.
    pub scope: SegmentScope,
    /// Label for people.
    pub label: String,
    /// File of the source, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_path: Option<String>,
    /// Text.
    pub content: String,
}

/// Source of a part of a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SegmentScope {
    /// Global system prompt of the project.
    GlobalSystemPrompt,
    /// Instruction file.
    Instruction,
    /// Skill file.
    Skill,
    /// Body of an agent file or system prompt of an agent definition.
    AgentBody,
    /// Configuration of the node.
    NodeConfig,
    /// Input of the run or of the node.
    RunInput,
}
