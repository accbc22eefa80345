//! States of the nodes of a flow in a run.

use serde_json::{Map, Value};
use utoipa::ToSchema;

/// Status of a node.
#[derive(Debug, ToSchema)]
#[schema(rename_all = "lowercase")]
pub enum NodeStatusName {
    /// Not visited.
    Idle,
    /// At work.
    Running,
    /// Completed.
    Completed,
    /// Failed.
    Failed,
    /// Passed over: its kind has no driver.
    Skipped,
    /// Waits for an answer.
    Waiting,
    /// The run ended before the visit did.
    Cancelled,
}

/// Tokens and cost.
#[derive(Debug, ToSchema)]
#[schema(rename_all = "camelCase")]
pub struct NodeUsage {
    /// Input tokens.
    #[schema(minimum = 0)]
    pub input_tokens: u64,
    /// Output tokens.
    #[schema(minimum = 0)]
    pub output_tokens: u64,
    /// All tokens.
    #[schema(minimum = 0)]
    pub total_tokens: u64,
    /// Cost in US dollars, if it is known.
    #[schema(nullable = false)]
    pub cost_usd: Option<f64>,
}

/// One visit of a node.
#[derive(Debug, ToSchema)]
#[schema(rename_all = "camelCase")]
pub struct NodeVisit {
    /// Number of the visit.
    #[schema(minimum = 1)]
    pub visit: u64,
    /// Status.
    #[schema(inline)]
    pub status: NodeStatusName,
    /// Attempts.
    #[schema(minimum = 1)]
    pub attempts: u32,
    /// Handle or action taken.
    #[schema(nullable = false)]
    pub action: Option<String>,
    /// Tokens and cost.
    pub usage: NodeUsage,
    /// Start.
    #[schema(format = "date-time", required = true)]
    pub started_at: Option<String>,
    /// End.
    #[schema(format = "date-time", required = true)]
    pub ended_at: Option<String>,
    /// Duration in milliseconds.
    #[schema(minimum = 0, required = true)]
    pub duration_ms: Option<u64>,
    /// Code of the error.
    #[schema(nullable = false)]
    pub error_code: Option<String>,
}

/// State of a node: the values of its latest visit. Long texts are cut.
#[derive(Debug, ToSchema)]
#[schema(rename_all = "camelCase")]
pub struct RunNode {
    /// Id; `outer/inner` in a sub-flow.
    pub node_id: String,
    /// Label.
    #[schema(nullable = false)]
    pub label: Option<String>,
    /// Kind.
    pub node_kind: String,
    /// Agent.
    #[schema(nullable = false)]
    pub agent_id: Option<String>,
    /// Status.
    #[schema(inline)]
    pub status: NodeStatusName,
    /// Latest visit; 0 before the first.
    #[schema(minimum = 0)]
    pub visit: u64,
    /// Attempts of the latest visit.
    #[schema(minimum = 0)]
    pub attempts: u32,
    /// Values of input ports.
    #[schema(value_type = Object)]
    pub inputs: Map<String, Value>,
    /// Parts of the prompt with their sources.
    #[schema(value_type = Vec<Object>)]
    pub prompt_sources: Vec<Map<String, Value>>,
    /// Data edges that brought a value.
    #[schema(value_type = Vec<Object>)]
    pub input_traces: Vec<Map<String, Value>>,
    /// Values of output ports.
    #[schema(value_type = Object)]
    pub port_outputs: Map<String, Value>,
    /// Final text.
    #[schema(nullable = false)]
    pub final_text: Option<String>,
    /// Structured output.
    #[schema(required = false)]
    pub structured_output: Option<Value>,
    /// Reasoning.
    #[schema(nullable = false)]
    pub reasoning_text: Option<String>,
    /// Tool calls.
    pub tool_calls: Vec<Value>,
    /// Artifacts.
    pub artifacts: Vec<Value>,
    /// Data edges that carried a value on.
    #[schema(value_type = Vec<Object>)]
    pub output_traces: Vec<Map<String, Value>>,
    /// Sums over all turns.
    pub usage: NodeUsage,
    /// Warnings.
    #[schema(value_type = Vec<Object>)]
    pub warnings: Vec<Map<String, Value>>,
    /// Start of the latest visit.
    #[schema(format = "date-time", required = true)]
    pub started_at: Option<String>,
    /// Its end.
    #[schema(format = "date-time", required = true)]
    pub ended_at: Option<String>,
    /// Its duration in milliseconds.
    #[schema(minimum = 0, required = true)]
    pub duration_ms: Option<u64>,
    /// Its error.
    #[schema(value_type = Object, required = false)]
    pub error_trace: Option<Map<String, Value>>,
    /// Visits in order; the newest hundred.
    pub visits: Vec<NodeVisit>,
    /// Type of the last event.
    #[schema(nullable = false)]
    pub last_event: Option<String>,
}

/// States of a flow's nodes in a run.
#[derive(Debug, ToSchema)]
pub struct RunNodes {
    /// Id of the run.
    pub run_id: String,
    /// Id of the thread.
    pub thread_id: String,
    /// Name of the assistant.
    pub assistant_id: String,
    /// Status of the run.
    pub status: String,
    /// Hash of the content that the run executes; null before it begins.
    #[schema(required = true)]
    pub content_hash: Option<String>,
    /// `true` if the newest progress is missing, because there was too much.
    pub is_incomplete: bool,
    /// Nodes in the order of the document, then those of sub-flows.
    pub nodes: Vec<RunNode>,
}
