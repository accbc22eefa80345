//! What is known of a run, and what it adds up to when it is over.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::spec::{CancelAction, MultitaskStrategy};
use super::status::RunStatus;
use crate::ids::{RunId, ThreadId};
use crate::messages::UsageMetadata;

/// The class of an error that nobody who is left has seen.
pub const LOST_ERROR: &str = "RunError";

/// A run as the store knows it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// The run.
    pub run_id: RunId,
    /// Its thread.
    pub thread_id: ThreadId,
    /// The assistant's name.
    pub assistant: String,
    /// Whose it is.
    pub user_id: Option<String>,
    /// Where it is in its life.
    pub status: RunStatus,
    /// Which attempt at executing it this is, from 1. Writes of an older one are refused.
    pub attempt: u32,
    /// Client metadata.
    pub metadata: Map<String, Value>,
    /// The request as clients see it.
    pub kwargs: Value,
    /// What it did about a busy thread.
    pub multitask: MultitaskStrategy,
    /// The model entry asked for.
    pub model_name: Option<String>,
    /// Where its end is told.
    pub webhook: Option<String>,
    /// A cancel that was asked for; the first one stands.
    pub cancel: Option<CancelAction>,
    /// Why it failed.
    pub error: Option<String>,
    /// The class of that error, such as `TimeoutError`; absent where nobody knew.
    pub error_name: Option<String>,
    /// Why it stopped early, such as `loop_capped` or `orphan_recovered`.
    pub stop_reason: Option<String>,
    /// What it adds up to, as far as that is stored; viewers see it once it is over.
    pub completion: RunCompletionData,
    /// When it was accepted, or for a delayed run when it may begin. Runs of a thread begin in this order.
    pub created_at: DateTime<Utc>,
    /// When it last changed.
    pub updated_at: DateTime<Utc>,
}

impl RunRecord {
    /// Whether it was taken, was given back, and waits to go on where it stood.
    pub fn was_given_back(&self) -> bool {
        self.status == RunStatus::Pending && self.attempt > 1
    }

    /// Whether its thread is kept for it: no other run may begin there, for this one goes on from what it left.
    pub fn holds_thread(&self) -> bool {
        self.status.is_owned() || self.was_given_back()
    }

    /// The class of the error it ended with.
    pub fn error_name(&self) -> &str {
        self.error_name.as_deref().unwrap_or(LOST_ERROR)
    }
}

/// What a run adds up to. Field names are the wire's.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RunCompletionData {
    /// Prompt tokens of all calls.
    pub total_input_tokens: u64,
    /// Completion tokens of all calls.
    pub total_output_tokens: u64,
    /// Their sum.
    pub total_tokens: u64,
    /// Model calls that reported usage, each counted once.
    pub llm_call_count: u64,
    /// Tokens of the lead agent.
    pub lead_agent_tokens: u64,
    /// Tokens of subagents.
    pub subagent_tokens: u64,
    /// Tokens of middlewares (titles, summaries).
    pub middleware_tokens: u64,
    /// Messages journaled.
    pub message_count: u64,
    /// The last answer, at most 2,000 characters.
    pub last_ai_message: Option<String>,
    /// The question, at most 2,000 characters.
    pub first_human_message: Option<String>,
    /// Tokens by provider model.
    pub token_usage_by_model: Map<String, Value>,
}

impl RunCompletionData {
    /// The sum of this and what came later.
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
            let held = self
                .token_usage_by_model
                .entry(model)
                .or_insert_with(|| Value::Object(Map::new()));
            add_up(held, used);
        }
        self
    }

    /// What each model was used for, by its entry's name.
    pub fn by_model(&self) -> impl Iterator<Item = (&str, UsageMetadata)> {
        self.token_usage_by_model
            .iter()
            .map(|(model, row)| (model.as_str(), usage_of(row)))
    }

    /// The same without what was said.
    #[must_use]
    pub fn without_text(self) -> Self {
        Self {
            last_ai_message: None,
            first_human_message: None,
            ..self
        }
    }
}

/// The counts of a model's row; older rows have a number alone.
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

/// Adds the counts of one object to those of another.
fn add_up(held: &mut Value, more: Value) {
    let (Value::Object(held), Value::Object(more)) = (held, more) else {
        return;
    };
    for (what, count) in more {
        let sum = held
            .get(&what)
            .and_then(Value::as_u64)
            .unwrap_or(0)
            .saturating_add(count.as_u64().unwrap_or(0));
        held.insert(what, sum.into());
    }
}

/// What search and the sidebar show of a thread. Always derived together with the run's status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ThreadStatus {
    /// Nothing runs and nothing is due.
    #[default]
    Idle,
    /// A run is pending or running.
    Busy,
    /// Nodes are due: a question, a breakpoint, a cancelled step.
    Interrupted,
    /// The last run failed.
    Error,
}

impl ThreadStatus {
    /// The status of a thread on which nothing runs, by what its newest checkpoint says is due.
    pub fn at_rest(anything_due: bool) -> Self {
        if anything_due {
            Self::Interrupted
        } else {
            Self::Idle
        }
    }

    /// The word on the wire and in the store.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Busy => "busy",
            Self::Interrupted => "interrupted",
            Self::Error => "error",
        }
    }

    /// Reads the word; `running` is DeerFlow's for busy, `timeout` its for a failed run.
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "idle" => Some(Self::Idle),
            "busy" | "running" => Some(Self::Busy),
            "interrupted" => Some(Self::Interrupted),
            "error" | "timeout" => Some(Self::Error),
            _ => None,
        }
    }

    /// The thread's status once a run ended in `run`, with or without nodes still due.
    pub fn after(run: RunStatus, nodes_due: bool) -> Self {
        match run {
            RunStatus::Pending | RunStatus::Starting | RunStatus::Running => Self::Busy,
            RunStatus::Error | RunStatus::Timeout => Self::Error,
            RunStatus::Interrupted => Self::Interrupted,
            RunStatus::Success if nodes_due => Self::Interrupted,
            RunStatus::Success => Self::Idle,
        }
    }
}
