//! The ways in which an agent's stream can end.

use super::super::live::Stop;
use super::super::spec::CancelAction;
use super::super::status::RunStatus;
use super::super::store::{CommitError, StoreError};
use crate::runtime::agent::{AgentError, AgentOutcome, StopKind};

/// The stop reason of a run that the store has no room for.
pub(super) const STORAGE_FULL: &str = "storage_full";

/// Why streaming stopped.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum StreamEnd {
    /// The agent said so.
    Done(AgentOutcome),
    /// It failed.
    Failed {
        /// The class.
        name: String,
        /// The text.
        message: String,
        /// The stop reason, where there is one.
        stop_reason: Option<String>,
    },
    /// Somebody cancelled it.
    Cancelled(CancelAction),
    /// It ran out of time.
    TimedOut(&'static str),
    /// The run is over by somebody else's word, or deleted: write nothing.
    Gone,
    /// Another attempt owns the run, or may: write nothing, say nothing.
    Lost,
    /// This process ends: another one goes on with the run.
    HandedOver,
    /// The store was away for so long that the agent was stopped: the run goes on once it is back.
    Away,
}

impl StreamEnd {
    pub(super) fn failed(name: &str, message: impl Into<String>) -> Self {
        Self::Failed {
            name: name.to_owned(),
            message: message.into(),
            stop_reason: None,
        }
    }

    /// The status the run gets; `None` when it is not ours to say.
    pub(super) fn status(&self) -> Option<RunStatus> {
        match self {
            Self::Done(_) => Some(RunStatus::Success),
            Self::Failed { .. } | Self::Cancelled(CancelAction::Rollback) => Some(RunStatus::Error),
            Self::Cancelled(CancelAction::Interrupt) => Some(RunStatus::Interrupted),
            Self::TimedOut(_) => Some(RunStatus::Timeout),
            Self::Gone | Self::Lost | Self::HandedOver | Self::Away => None,
        }
    }

    /// Questions that stay open.
    pub(super) fn questions(&self) -> &[serde_json::Value] {
        match self {
            Self::Done(AgentOutcome {
                kind: StopKind::Question(questions),
                ..
            }) => questions,
            _ => &[],
        }
    }
}

impl From<Stop> for StreamEnd {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Cancel(action) => Self::Cancelled(action),
            Stop::HandOver => Self::HandedOver,
            Stop::Fence => Self::Lost,
        }
    }
}

impl From<AgentError> for StreamEnd {
    fn from(error: AgentError) -> Self {
        Self::failed(error.name(), error.to_string())
    }
}

impl From<CommitError> for StreamEnd {
    fn from(error: CommitError) -> Self {
        match error {
            CommitError::Store(StoreError::NotWritable(reason)) => Self::Failed {
                name: "StorageError".to_owned(),
                message: format!("the run cannot be stored: {reason}"),
                stop_reason: Some(STORAGE_FULL.to_owned()),
            },
            CommitError::Store(StoreError::Unavailable(_)) => Self::Away,
            CommitError::Store(error) => {
                Self::failed("StorageError", format!("the run cannot be stored: {error}"))
            }
            CommitError::AlreadyTerminal(_) | CommitError::Gone(_) => Self::Gone,
            CommitError::OwnershipLost { .. } => Self::Lost,
        }
    }
}
