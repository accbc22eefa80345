//! Answers to commands, and the errors that they report.

use serde_json::{Map, Value, json};

use crate::dialect::Dialect;
use crate::error::ApiError;

/// Failure of a command: a code of the protocol and a text.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{code}: {message}")]
pub(super) struct CommandError {
    pub(super) code: &'static str,
    pub(super) message: String,
    /// Further fields of the answer.
    pub(super) details: Map<String, Value>,
}

impl CommandError {
    /// The parameters are not valid.
    pub(super) fn invalid(message: impl Into<String>) -> Self {
        Self::new("invalid_argument", message)
    }

    /// The question is not open.
    pub(super) fn no_such_interrupt(id: &str) -> Self {
        let id: String = id.chars().take(80).collect();
        Self::new(
            "no_such_interrupt",
            format!("no open question has the id {id:?}"),
        )
    }

    /// The thread has no run.
    pub(super) fn no_such_run() -> Self {
        Self::new("no_such_run", "the thread has no run")
    }

    pub(super) fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            details: Map::new(),
        }
    }
}

/// An error of the other routes: its text begins with the status that they answer.
impl From<ApiError> for CommandError {
    fn from(error: ApiError) -> Self {
        let status = error.status(Dialect::Platform);
        if status.is_server_error() {
            tracing::error!(status = status.as_u16(), %error, "a command failed");
        }
        let detail = match error.detail(Dialect::Platform) {
            Value::String(text) => text,
            other => other.to_string(),
        };
        Self::new("unknown_error", format!("{}: {detail}", status.as_u16()))
    }
}

/// Returns the answer to a command. `applied` is the position of the last event that was sent on
/// the connection.
pub(super) fn answer(id: &Value, result: &Result<Value, CommandError>, applied: u64) -> Value {
    match result {
        Ok(result) => json!({
            "type": "success", "id": id, "result": result,
            "meta": { "applied_through_seq": applied },
        }),
        Err(CommandError {
            code,
            message,
            details,
        }) => {
            let mut answer = details.clone();
            answer.insert("type".to_owned(), "error".into());
            answer.insert("id".to_owned(), id.clone());
            answer.insert("error".to_owned(), (*code).into());
            answer.insert("message".to_owned(), message.as_str().into());
            answer.into()
        }
    }
}
