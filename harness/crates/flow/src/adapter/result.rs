//! Result of a turn.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::error::FlowError;

/// Status of a finished turn. Only `Completed` is a success.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnStatus {
    /// Completed.
    Completed,
    /// Failed.
    Failed,
    /// Exceeded its time limit.
    TimedOut,
    /// Refused by a policy.
    Blocked,
    /// Stopped at a question, which `interrupt` holds.
    Interrupted,
}

impl TurnStatus {
    /// Returns the name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::TimedOut => "timed_out",
            Self::Blocked => "blocked",
            Self::Interrupted => "interrupted",
        }
    }
}

/// Result of a turn. A failure is a result with an `error`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentTurnResult {
    /// Status.
    pub status: TurnStatus,
    /// Final text.
    pub final_text: String,
    /// Structured output, an object.
    pub structured_output: Option<Value>,
    /// Reasoning of the model.
    pub reasoning_text: Option<String>,
    /// Tool calls that the agent reports.
    pub tool_calls: Vec<Value>,
    /// Artifacts that the agent reports.
    pub artifacts: Vec<Value>,
    /// Tokens and cost.
    pub usage: Usage,
    /// Warnings.
    pub warnings: Vec<TurnWarning>,
    /// Error, if the status is not `Completed`. `None` stands for the default error of the status.
    pub error: Option<FlowError>,
    /// Question of an interrupted turn.
    pub interrupt: Option<Value>,
    /// Proposal to delegate to another agent.
    pub delegation_proposal: Option<Map<String, Value>>,
    /// Id of the streamed message that contains the final text, if one was streamed.
    pub message_id: Option<String>,
}

impl AgentTurnResult {
    /// Creates a completed result.
    pub fn completed(final_text: impl Into<String>) -> Self {
        Self {
            status: TurnStatus::Completed,
            final_text: final_text.into(),
            structured_output: None,
            reasoning_text: None,
            tool_calls: Vec::new(),
            artifacts: Vec::new(),
            usage: Usage::default(),
            warnings: Vec::new(),
            error: None,
            interrupt: None,
            delegation_proposal: None,
            message_id: None,
        }
    }

    /// Creates a result with another status and its error.
    pub fn ended(status: TurnStatus, error: FlowError) -> Self {
        Self {
            status,
            error: Some(error),
            ..Self::completed("")
        }
    }
}

/// Tokens and cost of a turn.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    /// Input tokens.
    #[serde(default)]
    pub input_tokens: u64,
    /// Output tokens.
    #[serde(default)]
    pub output_tokens: u64,
    /// All tokens.
    #[serde(default)]
    pub total_tokens: u64,
    /// Cost in US dollars; `None` if the model has no price.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
}

/// Warning of a turn or node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnWarning {
    /// Stable code, such as `stream_unterminated`.
    pub code: String,
    /// Message for people.
    pub message: String,
}
