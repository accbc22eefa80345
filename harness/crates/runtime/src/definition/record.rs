//! Record of a run, and its usage totals.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::request::{CancelAction, MultitaskStrategy};
use super::request_echo::RequestEcho;
use super::status::RunStatus;
use super::stop_reason::StopReason;
use deerflow_core::ids::{RunId, ThreadId};
use deerflow_core::messages::UsageMetadata;

/// Error class of a run whose own error class is not known.
pub const LOST_ERROR: &str = "RunError";

/// Stored state of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// Id of the run.
    pub run_id: RunId,
    /// Id of its thread.
    pub thread_id: ThreadId,
    /// Name of the assistant.
    pub assistant: String,
    /// Id of the user who owns the run.
    pub user_id: Option<String>,
    /// Status of the run.
    pub status: RunStatus,
    /// Number of the current attempt, from 1. Writes of earlier attempts are rejected.
    pub attempt: u32,
    /// Metadata set by the client.
    pub metadata: Map<String, Value>,
    /// Request as clients see it.
    pub kwargs: RequestEcho,
    /// Strategy of the run when its thread was busy.
    pub multitask: MultitaskStrategy,
    /// Requested entry of the model configuration.
    pub model_name: Option<String>,
    /// URL that is called when the run ends.
    pub webhook: Option<String>,
    /// Requested cancel; later requests are ignored.
    pub cancel: Option<CancelAction>,
    /// Error text of a failed run.
    pub error: Option<String>,
    /// Class of that error, such as `TimeoutError`, if it is known.
    pub error_name: Option<String>,
    /// Text of the reason of an early stop, read with [`RunRecord::stop_reason`].
    pub stop_reason: Option<String>,
    /// Usage and message totals stored so far. Hidden from clients until the run has ended.
    pub completion: RunCompletionData,
    /// Time of acceptance or, for a delayed run, the earliest start. Runs of a thread start in this
    /// order.
    pub created_at: DateTime<Utc>,
    /// Time of the last change.
    pub updated_at: DateTime<Utc>,
}

impl RunRecord {
    /// Reports whether the run was started, released, and is queued to be resumed.
    pub fn was_released(&self) -> bool {
        self.status == RunStatus::Pending && self.attempt > 1
    }

    #[doc(hidden)]
    #[deprecated(note = "use `was_released`")]
    pub fn was_given_back(&self) -> bool {
        self.was_released()
    }

    /// Reports whether the run blocks its thread: no other run may start there, because this one
    /// resumes from its last state.
    pub fn holds_thread(&self) -> bool {
        self.status.is_owned() || self.was_released()
    }

    /// Returns the reason of an early stop.
    pub fn stop_reason(&self) -> Option<StopReason> {
        self.stop_reason.as_deref().map(StopReason::from)
    }

    /// Reports whether the end of the run records a rollback.
    pub fn is_rolled_back(&self) -> bool {
        self.stop_reason() == Some(StopReason::RolledBack)
    }

    /// Returns the class of the run's error.
    pub fn error_name(&self) -> &str {
        self.error_name.as_deref().unwrap_or(LOST_ERROR)
    }
}

/// Usage and message totals of a run. Field names are those of the wire format.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RunCompletionData {
    /// Prompt tokens of all calls.
    pub total_input_tokens: u64,
    /// Completion tokens of all calls.
    pub total_output_tokens: u64,
    /// Sum of prompt and completion tokens.
    pub total_tokens: u64,
    /// Number of model calls that reported usage. Each is counted once.
    pub llm_call_count: u64,
    /// Tokens used by the lead agent.
    pub lead_agent_tokens: u64,
    /// Tokens used by subagents.
    pub subagent_tokens: u64,
    /// Tokens used by middlewares, such as titles and summaries.
    pub middleware_tokens: u64,
    /// Number of messages in the journal.
    pub message_count: u64,
    /// Last answer, truncated to 2,000 characters.
    pub last_ai_message: Option<String>,
    /// First human message, truncated to 2,000 characters.
    pub first_human_message: Option<String>,
    /// Tokens by model of the provider.
    pub token_usage_by_model: Map<String, Value>,
}

impl RunCompletionData {
    /// Adds the totals of a later attempt.
    #[must_use]
    pub fn and(mut self, later: Self) -> Self {
        self.total_input_tokens = self
            .total_input_tokens
            .saturating_add(later.total_input_tokens);
        self.total_output_tokens = self
            .total_output_tokens
            .saturating_add(later.total_output_tokens);
        self.total_tokens = self.total_tokens.saturating_add(later.total_tokens);
        self.llm_call_count = self.llm_call_count.saturating_add(later.llm_call_count);
        self.lead_agent_tokens = self
            .lead_agent_tokens
            .saturating_add(later.lead_agent_tokens);
        self.subagent_tokens = self.subagent_tokens.saturating_add(later.subagent_tokens);
        self.middleware_tokens = self
            .middleware_tokens
            .saturating_add(later.middleware_tokens);
        self.message_count = self.message_count.saturating_add(later.message_count);
        self.last_ai_message = later.last_ai_message.or(self.last_ai_message);
        self.first_human_message = self.first_human_message.or(later.first_human_message);
        for (model, used) in later.token_usage_by_model {
            let total = self
                .token_usage_by_model
                .entry(model)
                .or_insert_with(|| Value::Object(Map::new()));
            add_up(total, used);
        }
        self
    }

    /// Iterates over the usage by name of the model entry.
    pub fn by_model(&self) -> impl Iterator<Item = (&str, UsageMetadata)> {
        self.token_usage_by_model
            .iter()
            .map(|(model, row)| (model.as_str(), usage_of(row)))
    }

    /// Returns the totals without message texts.
    #[must_use]
    pub fn without_text(self) -> Self {
        Self {
            last_ai_message: None,
            first_human_message: None,
            ..self
        }
    }
}

/// Parses the counts of one model. In an older format they are a single number.
fn usage_of(row: &Value) -> UsageMetadata {
    let count = |key: &str| row.get(key).and_then(Value::as_u64);
    let cached = count("cache_read_tokens")
        .map(|count| (UsageMetadata::CACHE_READ.to_owned(), count.into()));
    UsageMetadata {
        input_tokens: count("input_tokens").unwrap_or_default(),
        output_tokens: count("output_tokens").unwrap_or_default(),
        total_tokens: row
            .as_u64()
            .or_else(|| count("total_tokens"))
            .or_else(|| count("tokens"))
            .unwrap_or_default(),
        input_token_details: cached.into_iter().collect(),
        output_token_details: Map::new(),
    }
}

/// Adds the counts of `added` to those of `total`.
fn add_up(total: &mut Value, added: Value) {
    let (Value::Object(total), Value::Object(added)) = (total, added) else {
        return;
    };
    for (what, count) in added {
        let sum = total
            .get(&what)
            .and_then(Value::as_u64)
            .unwrap_or(0)
            .saturating_add(count.as_u64().unwrap_or(0));
        total.insert(what, sum.into());
    }
}

/// Status of a thread in search results and the sidebar. Always updated together with the run's
/// status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ThreadStatus {
    /// No run is active and no node is pending.
    #[default]
    Idle,
    /// A run is queued or running.
    Busy,
    /// Nodes are pending after an interrupt, a breakpoint or a cancelled step.
    Interrupted,
    /// The last run failed.
    Error,
}

impl ThreadStatus {
    /// Returns the status of a thread without active runs. `has_pending_nodes` is `true` if its
    /// newest checkpoint has pending nodes.
    pub fn at_rest(has_pending_nodes: bool) -> Self {
        if has_pending_nodes {
            Self::Interrupted
        } else {
            Self::Idle
        }
    }

    /// Returns the name on the wire and in the store.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Busy => "busy",
            Self::Interrupted => "interrupted",
            Self::Error => "error",
        }
    }

    /// Parses a status. DeerFlow uses `running` for busy and `timeout` for a failed run.
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "idle" => Some(Self::Idle),
            "busy" | "running" => Some(Self::Busy),
            "interrupted" => Some(Self::Interrupted),
            "error" | "timeout" => Some(Self::Error),
            _ => None,
        }
    }

    /// Returns the status of a thread after a run has ended as `run`, with or without pending
    /// nodes.
    pub fn after(run: RunStatus, has_pending_nodes: bool) -> Self {
        match run {
            RunStatus::Pending | RunStatus::Starting | RunStatus::Running => Self::Busy,
            RunStatus::Error | RunStatus::Timeout => Self::Error,
            RunStatus::Interrupted => Self::Interrupted,
            RunStatus::Success if has_pending_nodes => Self::Interrupted,
            RunStatus::Success => Self::Idle,
        }
    }
}
