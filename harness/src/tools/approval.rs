//! A person's decision about a call that needs an approval, read from the forms in which interfaces send it.
//!
//! Understood are the decisions of LangChain's human-in-the-loop middleware, the responses of Agent Inbox, booleans and plain
//! words; `docs/approvals.md` lists them. An answer that is none of these is an error and never a decision.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::messages::ToolCall;

/// The decisions that a question offers, in LangChain's words.
pub const ALLOWED_DECISIONS: [&str; 4] = ["approve", "edit", "reject", "respond"];

/// Words that approve a call.
const YES: &[&str] = &[
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
const NO: &[&str] = &[
    "false", "no", "n", "reject", "rejected", "deny", "denied", "decline", "declined", "ignore",
    "cancel", "refuse",
];
/// How much of an answer an error repeats, in characters.
const LONGEST_ECHO: usize = 80;

/// What a person decided about a call.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum Approval {
    /// The call is made as the model wrote it.
    Approve,
    /// Another call is made in its place.
    Edit {
        /// The call that is made.
        edited_action: EditedAction,
    },
    /// The call is not made.
    Reject {
        /// The reason, for the model.
        #[serde(skip_serializing_if = "Option::is_none")]
        message: Option<String>,
    },
    /// The call is not made, and its result is this text.
    Respond {
        /// The result.
        message: String,
    },
}

/// A call as a person wants it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EditedAction {
    /// The tool; `None` keeps the one that the model called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// All arguments.
    pub args: Map<String, Value>,
}

/// An answer that is no decision.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AnswerError {
    /// It is neither a yes nor a no.
    #[error("{0} is no decision; answer with approve, edit, reject or respond")]
    NoDecision(String),
    /// It decides on another number of calls.
    #[error("the answer holds {given} decisions, and {wanted} calls wait for one")]
    Count {
        /// Decisions in the answer.
        given: usize,
        /// Calls that wait.
        wanted: usize,
    },
    /// A decision lacks a field, or the field is something else.
    #[error("the decision {0:?} needs {1}")]
    Field(&'static str, &'static str),
    /// An edit names a tool that the agent does not have.
    #[error("the edited call names {0:?}, which is no tool of this agent")]
    UnknownTool(String),
}

impl Approval {
    /// Reads the answer about one call.
    ///
    /// # Errors
    /// When the answer is not exactly one decision.
    pub fn read(answer: &Value) -> Result<Self, AnswerError> {
        match listed(answer) {
            Some([one]) => decision(one),
            Some(several) => Err(AnswerError::Count {
                given: several.len(),
                wanted: 1,
            }),
            None => decision(answer),
        }
    }

    /// The call that is made instead of `call`; `None` where none is, or where it is made as it was written.
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

/// The edited argument in the type of the written one: forms such as Agent Inbox's edit every argument as text.
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

/// The decisions of an answer that holds a list of them, in the order of the calls: `{"decisions": [..]}`, or the list alone.
pub(crate) fn listed(answer: &Value) -> Option<&[Value]> {
    let list = if answer.is_array() {
        answer
    } else {
        answer.get("decisions")?
    };
    list.as_array().map(Vec::as_slice)
}

fn decision(answer: &Value) -> Result<Approval, AnswerError> {
    let no_decision = || AnswerError::NoDecision(echo(answer));
    match answer {
        Value::Bool(true) => Ok(Approval::Approve),
        Value::Bool(false) => Ok(Approval::Reject { message: None }),
        Value::String(word) => plain(word).ok_or_else(no_decision),
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
                        message.ok_or(AnswerError::Field("respond", "a text under `message`"))?;
                    Ok(Approval::Respond {
                        message: message.to_owned(),
                    })
                }
                word => match plain(word).ok_or_else(no_decision)? {
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

/// A word that decides.
fn plain(word: &str) -> Option<Approval> {
    let word = word.trim().trim_end_matches(['.', '!']).to_lowercase();
    if YES.contains(&word.as_str()) {
        return Some(Approval::Approve);
    }
    NO.contains(&word.as_str())
        .then_some(Approval::Reject { message: None })
}

/// What a person says beside a decision: LangChain's `message`, or Agent Inbox's `args`.
fn text(fields: &Map<String, Value>) -> Option<&str> {
    ["message", "args"]
        .into_iter()
        .find_map(|key| fields.get(key)?.as_str())
        .filter(|text| !text.is_empty())
}

/// `edited_action: {name, args}`, in JavaScript `editedAction`, or Agent Inbox's `args: {action, args}`.
fn edit(fields: &Map<String, Value>) -> Result<Approval, AnswerError> {
    let wanted = || {
        AnswerError::Field(
            "edit",
            "`edited_action` with `name` and `args`, which is an object",
        )
    };
    let edited = ["edited_action", "editedAction", "args"]
        .into_iter()
        .find_map(|key| fields.get(key))
        .ok_or_else(wanted)?;
    let args = edited
        .get("args")
        .and_then(Value::as_object)
        .cloned()
        .ok_or_else(wanted)?;
    let name = match edited.get("name").or_else(|| edited.get("action")) {
        None | Some(Value::Null) => None,
        Some(Value::String(name)) if !name.is_empty() => Some(name.clone()),
        Some(_) => return Err(wanted()),
    };
    Ok(Approval::Edit {
        edited_action: EditedAction { name, args },
    })
}

fn echo(answer: &Value) -> String {
    let text = answer.to_string();
    match text.char_indices().nth(LONGEST_ECHO) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// Reads a saved decision. Older versions saved the answer itself, in one of its forms.
pub(crate) fn saved<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Approval>, D::Error> {
    let saved = Option::<Value>::deserialize(deserializer)?;
    Ok(saved.and_then(|answer| Approval::read(&answer).ok()))
}

#[cfg(test)]
#[path = "approval_tests.rs"]
mod tests;
