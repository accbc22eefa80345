//! Why an agent did not do what it was asked to.

use std::fmt;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use agent_client_protocol::{
    Error as ProtocolError, ErrorCode, is_connection_terminated, is_incoming_transport_closed,
};

/// How much of an agent's own words is passed on, in characters.
const LONGEST_WORDS: usize = 2_000;

/// What an agent is to do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Greet,
    Open,
    TakeModel,
    Work,
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Greet => "start and greet",
            Self::Open => "open a session",
            Self::TakeModel => "take the configured model",
            Self::Work => "finish its task",
        })
    }
}

/// What went wrong with an agent. The texts go to models and logs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum AcpError {
    #[error("its folder cannot be used: {0}")]
    Folder(String),
    #[error("{0}")]
    Missing(String),
    #[error("its program could not be started: {0}")]
    Start(String),
    #[error("it did not {phase} within {} s and was ended", limit.as_secs_f64())]
    Late { phase: Phase, limit: Duration },
    #[error("it could not {phase}: {words}")]
    Refused { phase: Phase, words: String },
    #[error(
        "it wants to be signed in ({0}); whoever runs this server gives it a key in `env` of its entry, or signs it in as the server's user"
    )]
    SignIn(String),
    #[error("{0}, and was ended")]
    Broken(String),
    #[error("{}", ending(*.0))]
    Ended(Option<ExitStatus>),
    #[error("all {0} agents that may be at work at once are, try again later")]
    Full(usize),
}

impl AcpError {
    pub(super) fn of(phase: Phase, error: &ProtocolError) -> Self {
        if is_incoming_transport_closed(error) || is_connection_terminated(error) {
            return Self::Ended(None);
        }
        let data = error.data.as_ref().map(|data| {
            data.as_str()
                .map_or_else(|| data.to_string(), str::to_owned)
        });
        let words = [Some(error.message.clone()), data]
            .into_iter()
            .flatten()
            .collect::<Vec<_>>()
            .join(": ");
        let words: String = words.chars().take(LONGEST_WORDS).collect();
        if error.code == ErrorCode::AUTH_REQUIRED {
            Self::SignIn(words)
        } else {
            Self::Refused { phase, words }
        }
    }
}

fn ending(status: Option<ExitStatus>) -> String {
    match status.map(|status| (status.code(), status.signal())) {
        Some((Some(code), _)) => format!("it ended with exit code {code} before it was done"),
        Some((None, Some(signal))) => format!("it was ended by signal {signal} before it was done"),
        _ => "it closed its output before it was done".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_agents_own_words_are_told_and_cut() {
        let mut error = ProtocolError::new(-32603, "no credit");
        error.data = Some(json!({"details": "x".repeat(5_000)}));
        let told = AcpError::of(Phase::Work, &error).to_string();
        assert!(
            told.starts_with("it could not finish its task: no credit: {\"details\":\"xxx")
                && told.len() < 2_100,
            "{told}"
        );
        let told = AcpError::of(Phase::Open, &ProtocolError::new(-32000, "log in")).to_string();
        assert!(
            told.starts_with("it wants to be signed in (log in)"),
            "{told}"
        );
    }

    #[test]
    fn an_end_says_how() {
        let told = |raw: Option<i32>| AcpError::Ended(raw.map(ExitStatus::from_raw)).to_string();
        assert_eq!(
            told(Some(3 << 8)),
            "it ended with exit code 3 before it was done"
        );
        assert_eq!(told(Some(9)), "it was ended by signal 9 before it was done");
        assert_eq!(told(None), "it closed its output before it was done");
    }
}
