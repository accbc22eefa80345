//! What a task came to, as its lead agent, the interface and the journal get it.

use std::time::Duration;

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::agents::NestedEnd;
use crate::messages::{Message, ToolStatus, kwargs};
use crate::runtime::agent::{AgentError, SubagentNews, SubagentStatus, TokenCount};
use crate::state::{StateUpdate, ThreadState};
use crate::tools::{ToolControl, ToolOutput};

/// The longest excerpt of a result among a message's marks, in characters.
const BRIEF_CHARS: usize = 2_000;
/// The state's list of files that the user is shown.
const ARTIFACTS: &str = "artifacts";
/// The result of an agent that came to its end without a word.
const SPEECHLESS: &str = "The agent came to its end without an answer.";

/// How a task ended.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Ending {
    /// With a result, which is partial where a limit cut the work short.
    Completed { result: String, cap: Option<Cap> },
    /// Without one, for this reason.
    Failed(String),
    /// Its time was up.
    TimedOut(Duration),
    /// Not yet: it asks a person.
    Asks(ToolControl),
    /// With its run: a tool ended that on purpose.
    EndsRun { name: String, message: String },
}

/// Which limit cut the work short.
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

/// What the end of a subagent's run means for its task. `reached` is the state at which it ended.
pub(super) fn judge(end: Result<NestedEnd, AgentError>, reached: &ThreadState) -> Ending {
    match end {
        Ok(NestedEnd::Asks(control)) => Ending::Asks(control),
        Ok(NestedEnd::Done(state)) => by_last_word(&state),
        Err(AgentError::RecursionLimit(_)) => match answers(reached).find_map(spoken) {
            Some(result) => Ending::Completed {
                result,
                cap: Some(Cap::Turns),
            },
            None => Ending::Failed("it used up its turns before it had a result".to_owned()),
        },
        Err(AgentError::Ended { name, message }) => Ending::EndsRun { name, message },
        Err(error) => Ending::Failed(error.to_string()),
    }
}

fn by_last_word(state: &ThreadState) -> Ending {
    let Some(last) = answers(state).next() else {
        return Ending::Completed {
            result: SPEECHLESS.to_owned(),
            cap: None,
        };
    };
    if last.flag(kwargs::ERROR_FALLBACK) {
        let detail = last
            .additional_kwargs
            .get("error_detail")
            .and_then(Value::as_str)
            .map(str::to_owned);
        return Ending::Failed(detail.unwrap_or_else(|| last.content.text()));
    }
    let stopped = last
        .additional_kwargs
        .get(kwargs::GUARD_STOP)
        .and_then(Value::as_str);
    let cap = Cap::ALL
        .into_iter()
        .find(|cap| stopped == Some(cap.reason()));
    Ending::Completed {
        result: spoken(last).unwrap_or_else(|| SPEECHLESS.to_owned()),
        cap,
    }
}

/// The answers, the newest first.
fn answers(state: &ThreadState) -> impl Iterator<Item = &Message> {
    state
        .messages()
        .iter()
        .rev()
        .filter(|message| message.is_ai())
}

fn spoken(answer: &Message) -> Option<String> {
    Some(answer.content.text()).filter(|text| !text.trim().is_empty())
}

impl Ending {
    /// The news of it; none where the task has not ended.
    pub(super) fn news(&self) -> Option<SubagentNews> {
        let (status, text) = match self {
            Self::Completed { result, .. } => (SubagentStatus::Completed, result.clone()),
            Self::Failed(reason) => (SubagentStatus::Failed, reason.clone()),
            Self::EndsRun { message, .. } => (SubagentStatus::Failed, message.clone()),
            Self::TimedOut(limit) => (SubagentStatus::TimedOut, too_long(*limit)),
            Self::Asks(_) => return None,
        };
        Some(SubagentNews::Ended { status, text })
    }

    /// What the call gives back. The first words are those by which interfaces know how a task ended.
    pub(super) fn output(
        &self,
        model: Option<&str>,
        usage: TokenCount,
        reached: &ThreadState,
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
                format!("Task timed out. Error: {}", too_long(*limit)),
                SubagentStatus::TimedOut,
            ),
        };
        let mut output = ToolOutput::text(content);
        if status != SubagentStatus::Completed {
            output.status = ToolStatus::Error;
        }
        output.additional_kwargs = self.marks(status, model, usage);
        if let Some(artifacts) = reached.channel(ARTIFACTS) {
            output.update = StateUpdate::channel(ARTIFACTS, artifacts.clone());
        }
        output
    }

    /// What the interface reads of it on the message.
    fn marks(
        &self,
        status: SubagentStatus,
        model: Option<&str>,
        usage: TokenCount,
    ) -> Map<String, Value> {
        let mut marks = Map::from_iter([("subagent_status".to_owned(), json!(status))]);
        let mut mark = |key: &str, value: Value| marks.insert(key.to_owned(), value);
        match self {
            Self::Completed { result, cap } => {
                if let Some(cap) = cap {
                    mark("subagent_stop_reason", json!(cap.reason()));
                }
                mark("subagent_result_brief", brief(result).into());
                mark(
                    "subagent_result_sha256",
                    hex::encode(Sha256::digest(result)).into(),
                );
            }
            Self::Failed(reason)
            | Self::EndsRun {
                message: reason, ..
            } => {
                mark("subagent_error", brief(reason).into());
            }
            Self::TimedOut(limit) => {
                mark("subagent_error", too_long(*limit).into());
            }
            Self::Asks(_) => {}
        }
        if let Some(model) = model {
            mark("subagent_model_name", json!(model));
        }
        if !usage.is_zero() {
            mark(kwargs::SUBAGENT_TOKEN_USAGE, json!(usage));
        }
        marks
    }
}

fn too_long(limit: Duration) -> String {
    format!("it was not done after {} seconds", limit.as_secs())
}

fn brief(text: &str) -> String {
    text.chars().take(BRIEF_CHARS).collect()
}
