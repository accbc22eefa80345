//! Status and end of a stream.

use serde::{Deserialize, Serialize};

/// Kind of end of a run's stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TerminalKind {
    /// The run ended normally.
    End,
    /// The run failed; an `error` event precedes the end.
    Error,
    /// The run was cancelled.
    Cancel,
}

/// State of a run's stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamStatus {
    /// Open; more events may follow.
    Active,
    /// Open and waiting for user input: no event may follow for a long time.
    AwaitingInput,
    /// Ended with this kind; no event follows.
    Ended(TerminalKind),
}
