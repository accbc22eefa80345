//! Outcome of a task for the lead agent, clients and the journal.

use std::time::Duration;

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::agents::NestedEnd;
use crate::messages::{Message, ToolStatus, kwargs};
use crate::runtime::agent::{AgentError, SubagentStatus, SubagentUpdate, TokenCount};
use crate::state::{StateUpdate, ThreadState};
use crate::tools::{ToolControl, ToolOutput};

/// Maximum length of a result excerpt in the metadata of a message, in characters.
const MAX_EXCERPT_CHARS: usize = 2_000;
/// State channel with the files that clients present to the user.
const ARTIFACTS: &str = "artifacts";
/// Result of a subagent that ended without an answer.
const NO_ANSWER: &str = "The agent ended without an answer.";

/// Outcome of a task.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum TaskOutcome {
    /// The subagent has a result, which is partial if a limit stopped it.
    Completed { result: String, cap: Option<Cap> },
    /// The subagent failed without a result, for this reason.
    Failed(String),
    /// The subagent exceeded its timeout.
    TimedOut(Duration),
    /// The subagent has not ended: it asks the user a question.
    Asks(ToolControl),
    /// A tool ended the whole run.
    EndsRun { name: String, message: String },
}

/// Limit that stopped the subagent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cap {
    Tokens,
    Turns,
    Loop,
}

impl Cap {
    const ALL: [Self; 3] = [Self::Tokens, Self::Turns, Self::Loop];

    fn reason(self) -> &'static str {
        match self {
            Self::Tokens => "token_capped",
            Self::Turns => "turn_capped",
            Self::Loop => "loop_capped",
        }
    }

    fn label(self) -> &'static str {
        match self {
            Self::Tokens => "token budget",
            Self::Turns => "turn budget",
            Self::Loop => "repeated tool-call loop",
        }
    }
}

/// Classifies the end of a subagent. `last_state` is its last state.
pub(super) fn classify(
    end: Result<NestedEnd, AgentError>,
    last_state: &ThreadState,
) -> TaskOutcome {
    match end {
        Ok(NestedEnd::Asks(control)) => TaskOutcome::Asks(control),
        Ok(NestedEnd::Done(state)) => from_last_answer(&state),
        Err(AgentError::RecursionLimit(_)) => match answers(last_state).find_map(answer_text) {
            Some(result) => TaskOutcome::Completed {
                result,
                cap: Some(Cap::Turns),
            },
            None => TaskOutcome::Failed("it used up its turns before it had a result".to_owned()),
        },
        Err(AgentError::Ended { name, message }) => TaskOutcome::EndsRun { name, message },
        Err(error) => TaskOutcome::Failed(error.to_string()),
    }
}

fn from_last_answer(state: &ThreadState) -> TaskOutcome {
    let Some(last) = answers(state).next() else {
        return TaskOutcome::Completed {
            result: NO_ANSWER.to_owned(),
            cap: None,
        };
    };
    if last.flag(kwargs::ERROR_FALLBACK) {
        let detail = last
            .additional_kwargs
            .get("error_detail")
            .and_then(Value::as_str)
            .map(str::to_owned);
        return TaskOutcome::Failed(detail.unwrap_or_else(|| last.content.text()));
    }
    let stopped = last
        .additional_kwargs
        .get(kwargs::GUARD_STOP)
        .and_then(Value::as_str);
    let cap = Cap::ALL
        .into_iter()
        .find(|cap| stopped == Some(cap.reason()));
    TaskOutcome::Completed {
        result: answer_text(last).unwrap_or_else(|| NO_ANSWER.to_owned()),
        cap,
    }
}

/// Returns the answers, newest first.
fn answers(state: &ThreadState) -> impl Iterator<Item = &Message> {
    state
        .messages()
        .iter()
        .rev()
        .filter(|message| message.is_ai())
}

fn answer_text(answer: &Message) -> Option<String> {
    Some(answer.content.text()).filter(|text| !text.trim().is_empty())
}

impl TaskOutcome {
    /// Returns the event of the end; `None` if the task has not ended.
    pub(super) fn event(&self) -> Option<SubagentUpdate> {
        let (status, text) = match self {
            Self::Completed { result, .. } => (SubagentStatus::Completed, result.clone()),
            Self::Failed(reason) => (SubagentStatus::Failed, reason.clone()),
            Self::EndsRun { message, .. } => (SubagentStatus::Failed, message.clone()),
            Self::TimedOut(limit) => (SubagentStatus::TimedOut, timeout_text(*limit)),
            Self::Asks(_) => return None,
        };
        Some(SubagentUpdate::Ended { status, text })
    }

    /// Builds the output of the call. Clients detect the outcome by the first words of its text.
    pub(super) fn output(
        &self,
        model: Option<&str>,
        usage: TokenCount,
        last_state: &ThreadState,
    ) -> ToolOutput {
        let (content, status) = match self {
            Self::Asks(control) => return ToolOutput::only(control.clone()),
            Self::Completed { result, cap: None } => (
                format!("Task Succeeded. Result: {result}"),
                SubagentStatus::Completed,
            ),
            Self::Completed {
                result,
                cap: Some(cap),
            } => (
                format!(
                    "Task Succeeded (cut short by its {}). Result: {result}",
                    cap.label()
                ),
                SubagentStatus::Completed,
            ),
            Self::Failed(reason)
            | Self::EndsRun {
                message: reason, ..
            } => (
                format!("Task failed. Error: {reason}"),
                SubagentStatus::Failed,
            ),
            Self::TimedOut(limit) => (
                format!("Task timed out. Error: {}", timeout_text(*limit)),
                SubagentStatus::TimedOut,
            ),
        };
        let mut output = ToolOutput::text(content);
        if status != SubagentStatus::Completed {
            output.status = ToolStatus::Error;
        }
        output.additional_kwargs = self.metadata(status, model, usage);
        if let Some(artifacts) = last_state.channel(ARTIFACTS) {
            output.update = StateUpdate::channel(ARTIFACTS, artifacts.clone());
        }
        output
    }

    /// Builds the metadata of the message that clients read.
    fn metadata(
        &self,
        status: SubagentStatus,
        model: Option<&str>,
        usage: TokenCount,
    ) -> Map<String, Value> {
        let mut metadata = Map::from_iter([("subagent_status".to_owned(), json!(status))]);
        let mut mark = |key: &str, value: Value| metadata.insert(key.to_owned(), value);
        match self {
            Self::Completed { result, cap } => {
                if let Some(cap) = cap {
                    mark("subagent_stop_reason", json!(cap.reason()));
                }
                mark("subagent_result_brief", excerpt(result).into());
                mark(
                    "subagent_result_sha256",
                    hex::encode(Sha256::digest(result)).into(),
                );
            }
            Self::Failed(reason)
            | Self::EndsRun {
                message: reason, ..
            } => {
                mark("subagent_error", excerpt(reason).into());
            }
            Self::TimedOut(limit) => {
                mark("subagent_error", timeout_text(*limit).into());
            }
            Self::Asks(_) => {}
        }
        if let Some(model) = model {
            mark("subagent_model_name", json!(model));
        }
        if !usage.is_zero() {
            mark(kwargs::SUBAGENT_TOKEN_USAGE, json!(usage));
        }
        metadata
    }
}

fn timeout_text(limit: Duration) -> String {
    format!("it was not done after {} seconds", limit.as_secs())
}

fn excerpt(text: &str) -> String {
    text.chars().take(MAX_EXCERPT_CHARS).collect()
}
