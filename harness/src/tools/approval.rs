//! Decision of a user about a tool call that needs approval, parsed from the forms that interfaces
//! send.
//!
//! Accepted are the decisions of LangChain's human-in-the-loop middleware, the responses of Agent
//! Inbox, booleans and plain words; `docs/approvals.md` lists them. Any other answer is an error
//! and never counts as a decision.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::messages::ToolCall;

/// Decisions that an approval request offers, named as in LangChain.
pub const ALLOWED_DECISIONS: [&str; 4] = ["approve", "edit", "reject", "respond"];

/// Words that approve a call.
const APPROVING_WORDS: &[&str] = &[
    "true",
    "yes",
    "y",
    "ok",
    "okay",
    "approve",
    "approved",
    "accept",
    "accepted",
    "allow",
    "allowed",
    "confirm",
    "confirmed",
];
/// Words that reject a call.
const REJECTING_WORDS: &[&str] = &[
    "false", "no", "n", "reject", "rejected", "deny", "denied", "decline", "declined", "ignore",
    "cancel", "refuse",
];
/// Maximum length of an answer that an error repeats, in characters.
const MAX_ECHO_CHARS: usize = 80;

/// Decision of a user about a tool call.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum Approval {
    /// The call is made as the model wrote it.
    Approve,
    /// Another call is made instead.
    Edit {
        /// The call that is made instead.
        edited_action: EditedAction,
    },
    /// The call is not made.
    Reject {
        /// Reason for the rejection, shown to the model.
        #[serde(skip_serializing_if = "Option::is_none")]
        message: Option<String>,
    },
    /// The call is not made, and this text is its result.
    Respond {
        /// Text of the result.
        message: String,
    },
}

/// Tool call as edited by a user.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EditedAction {
    /// Name of the tool; `None` for the tool that the model called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// All arguments of the edited call.
    pub args: Map<String, Value>,
}

/// Error of an answer that is not a valid decision.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecisionError {
    /// The answer neither approves nor rejects.
    #[error("{0} is not a decision; answer with approve, edit, reject or respond")]
    NoDecision(String),
    /// The answer contains a wrong number of decisions.
    #[error("the answer contains {given} decisions, but {wanted} calls wait for one")]
    Count {
        /// Number of decisions in the answer.
        given: usize,
        /// Number of calls that wait for a decision.
        wanted: usize,
    },
    /// A decision lacks a field, or the field has the wrong type.
    #[error("the decision {0:?} needs {1}")]
    Field(&'static str, &'static str),
    /// An edit names a tool that the agent does not have.
    #[error("the edited call names {0:?}, which is not a tool of this agent")]
    UnknownTool(String),
}

impl Approval {
    /// Parses the answer about one call.
    ///
    /// # Errors
    /// Returns an error if the answer is not exactly one decision.
    pub fn read(answer: &Value) -> Result<Self, DecisionError> {
        match decision_list(answer) {
            Some([one]) => decision(one),
            Some(several) => Err(DecisionError::Count {
                given: several.len(),
                wanted: 1,
            }),
            None => decision(answer),
        }
    }

    /// Returns the edited call that replaces `call`; `None` if the decision is not an edit.
    pub fn edited(&self, call: &ToolCall) -> Option<ToolCall> {
        let Self::Edit {
            edited_action: EditedAction { name, args },
        } = self
        else {
            return None;
        };
        let name = name.clone().unwrap_or_else(|| call.name.clone());
        let args = args
            .iter()
            .map(|(key, value)| (key.clone(), retyped(value, call.args.get(key))))
            .collect();
        Some(ToolCall {
            name,
            args,
            ..call.clone()
        })
    }
}

/// Converts an edited argument back to the type of the original one: Agent Inbox and similar forms
/// send every argument as text.
fn retyped(edited: &Value, written: Option<&Value>) -> Value {
    match (edited, written) {
        (Value::String(_), None | Some(Value::String(_) | Value::Null)) => edited.clone(),
        (Value::String(text), Some(written)) => {
            let same_type =
                |typed: &Value| std::mem::discriminant(typed) == std::mem::discriminant(written);
            serde_json::from_str(text)
                .ok()
                .filter(same_type)
                .unwrap_or_else(|| edited.clone())
        }
        _ => edited.clone(),
    }
}

/// Returns the decisions of an answer that contains a list, in the order of the calls. Accepts
/// `{"decisions": [..]}` and a bare list.
pub(crate) fn decision_list(answer: &Value) -> Option<&[Value]> {
    let list = if answer.is_array() {
        answer
    } else {
        answer.get("decisions")?
    };
    list.as_array().map(Vec::as_slice)
}

fn decision(answer: &Value) -> Result<Approval, DecisionError> {
    let no_decision = || DecisionError::NoDecision(echo(answer));
    match answer {
        Value::Bool(true) => Ok(Approval::Approve),
        Value::Bool(false) => Ok(Approval::Reject { message: None }),
        Value::String(word) => from_word(word).ok_or_else(no_decision),
        Value::Object(fields) => {
            let kind = fields
                .get("type")
                .and_then(Value::as_str)
                .ok_or_else(no_decision)?;
            match kind.trim().to_ascii_lowercase().as_str() {
                "edit" => edit(fields),
                "respond" | "response" => {
                    let message = text(fields).filter(|text| !text.trim().is_empty());
                    let message =
                        message.ok_or(DecisionError::Field("respond", "a text under `message`"))?;
                    Ok(Approval::Respond {
                        message: message.to_owned(),
                    })
                }
                word => match from_word(word).ok_or_else(no_decision)? {
                    Approval::Reject { .. } => Ok(Approval::Reject {
                        message: text(fields).map(str::to_owned),
                    }),
                    other => Ok(other),
                },
            }
        }
        _ => Err(no_decision()),
    }
}

/// Parses a decision that consists of a single word.
fn from_word(word: &str) -> Option<Approval> {
    let word = word.trim().trim_end_matches(['.', '!']).to_lowercase();
    if APPROVING_WORDS.contains(&word.as_str()) {
        return Some(Approval::Approve);
    }
    REJECTING_WORDS
        .contains(&word.as_str())
        .then_some(Approval::Reject { message: None })
}

/// Returns the text that accompanies a decision: LangChain's `message`, or Agent Inbox's `args`.
fn text(fields: &Map<String, Value>) -> Option<&str> {
    ["message", "args"]
        .into_iter()
        .find_map(|key| fields.get(key)?.as_str())
        .filter(|text| !text.is_empty())
}

/// Parses an edit: `edited_action: {name, args}`, `editedAction` in JavaScript, or Agent Inbox's
/// `args: {action, args}`.
fn edit(fields: &Map<String, Value>) -> Result<Approval, DecisionError> {
    let expected_form = || {
        DecisionError::Field(
            "edit",
            "`edited_action` with `name` and `args`, which is an object",
        )
    };
    let edited = ["edited_action", "editedAction", "args"]
        .into_iter()
        .find_map(|key| fields.get(key))
        .ok_or_else(expected_form)?;
    let args = edited
        .get("args")
        .and_then(Value::as_object)
        .cloned()
        .ok_or_else(expected_form)?;
    let name = match edited.get("name").or_else(|| edited.get("action")) {
        None | Some(Value::Null) => None,
        Some(Value::String(name)) if !name.is_empty() => Some(name.clone()),
        Some(_) => return Err(expected_form()),
    };
    Ok(Approval::Edit {
        edited_action: EditedAction { name, args },
    })
}

fn echo(answer: &Value) -> String {
    let text = answer.to_string();
    match text.char_indices().nth(MAX_ECHO_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// Deserializes a saved decision. Older versions saved the raw answer in one of the accepted forms.
pub(crate) fn deserialize_saved<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Approval>, D::Error> {
    let saved = Option::<Value>::deserialize(deserializer)?;
    Ok(saved.and_then(|answer| Approval::read(&answer).ok()))
}

// Former names, for crates that were written against them.
#[doc(hidden)]
pub use crate::tools::approval::DecisionError as AnswerError;

#[cfg(test)]
#[path = "approval_tests.rs"]
mod tests;
