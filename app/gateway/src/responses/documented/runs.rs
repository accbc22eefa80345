//! Runs and their events.

use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::selection::selection;

/// Status of a run.
#[derive(Debug, ToSchema)]
#[schema(as = RunStatus, rename_all = "snake_case")]
pub enum RunStatusName {
    /// `pending`.
    Pending,
    /// `running`.
    Running,
    /// `success`.
    Success,
    /// `error`.
    Error,
    /// `timeout`.
    Timeout,
    /// `interrupted`.
    Interrupted,
}

/// Strategy for a busy thread.
#[derive(Debug, ToSchema)]
#[schema(rename_all = "snake_case")]
pub enum RunMultitaskStrategy {
    /// `reject`.
    Reject,
    /// `rollback`.
    Rollback,
    /// `interrupt`.
    Interrupt,
    /// `enqueue`.
    Enqueue,
}

/// An execution of an agent.
#[derive(Debug, ToSchema)]
pub struct Run {
    /// Id of the run.
    #[schema(format = "uuid")]
    pub run_id: String,
    /// Id of the thread.
    #[schema(required = true)]
    pub thread_id: Option<String>,
    /// Id of the assistant.
    #[schema(format = "uuid")]
    pub assistant_id: String,
    /// Current status.
    pub status: RunStatusName,
    /// Metadata.
    #[schema(value_type = Object)]
    pub metadata: Map<String, Value>,
    /// The interpreted request, with secrets redacted.
    #[schema(value_type = Object)]
    pub kwargs: Map<String, Value>,
    /// Strategy for a busy thread.
    #[schema(inline)]
    pub multitask_strategy: RunMultitaskStrategy,
    /// Name of a LangSmith session; always null. Only on the platform.
    pub langsmith_session_name: Option<String>,
    /// Time of creation.
    #[schema(format = "date-time")]
    pub created_at: String,
    /// Time of the last change.
    #[schema(format = "date-time")]
    pub updated_at: String,
    /// Number of input tokens.
    pub total_input_tokens: i64,
    /// Number of output tokens.
    pub total_output_tokens: i64,
    /// Number of tokens.
    pub total_tokens: i64,
    /// Number of model calls.
    pub llm_call_count: i64,
    /// Tokens of the lead agent.
    pub lead_agent_tokens: i64,
    /// Tokens of subagents.
    pub subagent_tokens: i64,
    /// Tokens of middlewares.
    pub middleware_tokens: i64,
    /// Number of messages.
    pub message_count: i64,
    /// Reason of an early end.
    #[schema(required = true)]
    pub stop_reason: Option<String>,
    /// Error, if there is one.
    #[schema(required = true)]
    pub error: Option<String>,
    /// Reason why a run waits. A queued run: `delayed`, `thread_busy`, `user_limit` or `ready`. A run
    /// that executes: the kind of work for which it has no permit yet, such as `model_calls`. Only a
    /// run that waits has it, in answers to requests that read runs.
    #[schema(nullable = false)]
    pub queue_reason: Option<String>,
}

/// An event of a stream: its name, its data as JSON text, and its id for resuming.
#[derive(Debug, ToSchema)]
pub struct StreamEvent {
    /// Name of the event.
    #[schema(nullable = false)]
    pub event: Option<String>,
    /// Data of the event, as JSON text.
    #[schema(nullable = false)]
    pub data: Option<String>,
    /// Id of the event.
    #[schema(nullable = false)]
    pub id: Option<String>,
}

/// The last state; `__error__` holds an error, `__interrupt__` the interrupts.
#[derive(Debug, ToSchema)]
#[schema(value_type = Option<Object>)]
pub struct RunOutcome(pub Option<Map<String, Value>>);

selection!(
    /// A page of runs.
    Runs of Run: "A run, or its selected fields."
);
