//! Errors of an ACP agent call.

use std::fmt;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use agent_client_protocol::{
    Error as ProtocolError, ErrorCode, is_connection_terminated, is_incoming_transport_closed,
};

/// Maximum length of an agent's error message in an error text, in characters.
const MAX_ERROR_CHARS: usize = 2_000;

/// Phase of a session. `Display` returns the verb phrase of the error text "it did not ..".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Initialize,
    NewSession,
    SetModel,
    Prompt,
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Initialize => "start and complete its handshake",
            Self::NewSession => "open a session",
            Self::SetModel => "take the configured model",
            Self::Prompt => "finish its task",
        })
    }
}

/// Failure of an ACP agent call. The texts are returned to the model and logged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum AcpError {
    #[error("its folder cannot be used: {0}")]
    Folder(String),
    #[error("{0}")]
    NotFound(String),
    #[error("its program could not be started: {0}")]
    Start(String),
    #[error("it did not {phase} within {} s and was ended", limit.as_secs_f64())]
    Timeout { phase: Phase, limit: Duration },
    #[error("it could not {phase}: {message}")]
    Rejected { phase: Phase, message: String },
    #[error(
        "it wants to be signed in ({0}); whoever runs this server gives it a key in `env` of its entry, or signs it in as the server's user"
    )]
    AuthRequired(String),
    #[error("{0}, and was ended")]
    Failed(String),
    #[error("{}", exit_text(*.0))]
    Exited(Option<ExitStatus>),
    #[error("all {0} agents that may run concurrently are in use, try again later")]
    AtCapacity(usize),
}

impl AcpError {
    pub(super) fn of(phase: Phase, error: &ProtocolError) -> Self {
        if is_incoming_transport_closed(error) || is_connection_terminated(error) {
            return Self::Exited(None);
        }
        let data = error.data.as_ref().map(|data| {
            data.as_str()
                .map_or_else(|| data.to_string(), str::to_owned)
        });
        let message = [Some(error.message.clone()), data]
            .into_iter()
            .flatten()
            .collect::<Vec<_>>()
            .join(": ");
        let message: String = message.chars().take(MAX_ERROR_CHARS).collect();
        if error.code == ErrorCode::AUTH_REQUIRED {
            Self::AuthRequired(message)
        } else {
            Self::Rejected { phase, message }
        }
    }
}

fn exit_text(status: Option<ExitStatus>) -> String {
    match status.map(|status| (status.code(), status.signal())) {
        Some((Some(code), _)) => {
            format!("it ended with exit code {code} before its task was complete")
        }
        Some((None, Some(signal))) => {
            format!("it was ended by signal {signal} before its task was complete")
        }
        _ => "it closed its output before its task was complete".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn agent_error_text_is_included_and_truncated() {
        let mut error = ProtocolError::new(-32603, "no credit");
        error.data = Some(json!({"details": "x".repeat(5_000)}));
        let text = AcpError::of(Phase::Prompt, &error).to_string();
        assert!(
            text.starts_with("it could not finish its task: no credit: {\"details\":\"xxx")
                && text.len() < 2_100,
            "{text}"
        );
        let text =
            AcpError::of(Phase::NewSession, &ProtocolError::new(-32000, "log in")).to_string();
        assert!(
            text.starts_with("it wants to be signed in (log in)"),
            "{text}"
        );
    }

    #[test]
    fn exit_text_names_code_or_signal() {
        let text = |raw: Option<i32>| AcpError::Exited(raw.map(ExitStatus::from_raw)).to_string();
        assert_eq!(
            text(Some(3 << 8)),
            "it ended with exit code 3 before its task was complete"
        );
        assert_eq!(
            text(Some(9)),
            "it was ended by signal 9 before its task was complete"
        );
        assert_eq!(
            text(None),
            "it closed its output before its task was complete"
        );
    }
}
