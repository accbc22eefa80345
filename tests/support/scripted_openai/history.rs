//! Strict mode: checks that every tool call of a history has exactly one result directly after it.

use serde_json::Value;

/// Reason for which a real provider would reject this history.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HistoryError {
    /// The role is missing or unknown.
    #[error("messages[{at}]: unknown role {role:?}")]
    Role {
        /// Index of the message.
        at: usize,
        /// The role.
        role: String,
    },
    /// A call without an id, a tool name or an argument text.
    #[error("messages[{at}]: tool call without {what}")]
    IncompleteCall {
        /// Index of the assistant message.
        at: usize,
        /// The missing part.
        what: &'static str,
    },
    /// Two calls of one turn share an id.
    #[error("messages[{at}]: two tool calls with the id {id:?}")]
    TwinCalls {
        /// Index of the assistant message.
        at: usize,
        /// The shared id.
        id: String,
    },
    /// A tool result that names no call.
    #[error("messages[{at}]: tool result with an empty tool_call_id")]
    NamelessResult {
        /// Index of the tool message.
        at: usize,
    },
    /// A tool result for a call that has no pending result.
    #[error("messages[{at}]: tool result for {id:?}, {why}")]
    StrayResult {
        /// Index of the tool message.
        at: usize,
        /// The call's id in the result.
        id: String,
        /// The mismatch.
        why: &'static str,
    },
    /// A message, or the end of the history, comes before every call has its result.
    #[error("messages[{at}]: {role} before the results of {ids:?}")]
    Unanswered {
        /// Index of the message that came too early; the length of the history at its end.
        at: usize,
        /// The role of that message, or `end of history`.
        role: String,
        /// Calls without a result, in the order they were made.
        ids: Vec<String>,
    },
}

/// Checks the pairing of calls and results in `messages`.
///
/// Results of parallel calls may come in any order, but no other message may be between the calls
/// and their results.
///
/// # Errors
/// Returns the first violation with the index of its message.
pub fn check(messages: &[Value]) -> Result<(), HistoryError> {
    let mut waiting: Vec<String> = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        let role = message["role"].as_str().unwrap_or_default();
        match role {
            "tool" => take_result(messages, at, &mut waiting)?,
            "system" | "developer" | "user" | "assistant" => all_answered(&waiting, at, role)?,
            _ => {
                return Err(HistoryError::Role {
                    at,
                    role: role.to_owned(),
                });
            }
        }
        if role == "assistant" {
            waiting = calls_made(message, at)?;
        }
    }
    all_answered(&waiting, messages.len(), "end of history")
}

fn all_answered(waiting: &[String], at: usize, role: &str) -> Result<(), HistoryError> {
    if waiting.is_empty() {
        return Ok(());
    }
    Err(HistoryError::Unanswered {
        at,
        role: role.to_owned(),
        ids: waiting.to_vec(),
    })
}

fn calls_made(message: &Value, at: usize) -> Result<Vec<String>, HistoryError> {
    let mut ids: Vec<String> = Vec::new();
    for call in message["tool_calls"].as_array().into_iter().flatten() {
        let incomplete = |what| HistoryError::IncompleteCall { at, what };
        let id = text(&call["id"]).ok_or_else(|| incomplete("an id"))?;
        text(&call["function"]["name"]).ok_or_else(|| incomplete("a tool name"))?;
        call["function"]["arguments"]
            .as_str()
            .ok_or_else(|| incomplete("an argument text"))?;
        if ids.iter().any(|other| other == id) {
            return Err(HistoryError::TwinCalls {
                at,
                id: id.to_owned(),
            });
        }
        ids.push(id.to_owned());
    }
    Ok(ids)
}

fn take_result(
    messages: &[Value],
    at: usize,
    waiting: &mut Vec<String>,
) -> Result<(), HistoryError> {
    let id = text(&messages[at]["tool_call_id"]).ok_or(HistoryError::NamelessResult { at })?;
    if let Some(place) = waiting.iter().position(|call| call == id) {
        waiting.remove(place);
        return Ok(());
    }
    let (before, after) = messages.split_at(at);
    let why = if before.iter().any(|message| message["tool_call_id"] == id) {
        "which was answered already"
    } else if before.iter().any(|message| makes_call(message, id)) {
        "too long after the call"
    } else if after.iter().any(|message| makes_call(message, id)) {
        "before the call was made"
    } else {
        "a call that was never made"
    };
    Err(HistoryError::StrayResult {
        at,
        id: id.to_owned(),
        why,
    })
}

fn makes_call(message: &Value, id: &str) -> bool {
    message["tool_calls"]
        .as_array()
        .is_some_and(|calls| calls.iter().any(|call| call["id"] == id))
}

fn text(value: &Value) -> Option<&str> {
    value.as_str().filter(|text| !text.is_empty())
}

#[cfg(test)]
#[path = "history_tests.rs"]
mod tests;
