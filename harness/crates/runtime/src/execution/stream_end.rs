//! Reasons why an agent's stream ends.

use crate::agent::{AgentError, AgentOutcome, StopKind};
use crate::definition::{CancelAction, RunStatus, StopReason, StoreError};
use crate::kernel::StopSignal;
use crate::ports::CommitError;

/// Reason why streaming ended.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum StreamEnd {
    /// The agent finished or stopped.
    Done(AgentOutcome),
    /// The run failed.
    Failed {
        /// Class of the error.
        name: String,
        /// Text of the error.
        message: String,
        /// Stop reason, if there is one.
        stop_reason: Option<StopReason>,
    },
    /// The run was cancelled.
    Cancelled(CancelAction),
    /// The run timed out.
    TimedOut(&'static str),
    /// The run was ended by another process, or deleted. No more writes are allowed.
    Gone,
    /// Another attempt owns the run, or may own it. No more writes or events are allowed.
    Lost,
    /// This process shuts down; another process resumes the run.
    Released,
    /// The agent was stopped because the store was unavailable for too long. The run resumes when
    /// the store is back.
    StoreUnavailable,
}

impl StreamEnd {
    pub(super) fn failed(name: &str, message: impl Into<String>) -> Self {
        Self::Failed {
            name: name.to_owned(),
            message: message.into(),
            stop_reason: None,
        }
    }

    /// Returns the status of the run; `None` if this process must not end it.
    pub(super) fn status(&self) -> Option<RunStatus> {
        match self {
            Self::Done(_) => Some(RunStatus::Success),
            Self::Failed { .. } | Self::Cancelled(CancelAction::Rollback) => Some(RunStatus::Error),
            Self::Cancelled(CancelAction::Interrupt) => Some(RunStatus::Interrupted),
            Self::TimedOut(_) => Some(RunStatus::Timeout),
            Self::Gone | Self::Lost | Self::Released | Self::StoreUnavailable => None,
        }
    }

    /// Returns the interrupts that stay open.
    pub(super) fn interrupts(&self) -> &[serde_json::Value] {
        match self {
            Self::Done(AgentOutcome {
                kind: StopKind::Question(interrupts),
                ..
            }) => interrupts,
            _ => &[],
        }
    }
}

impl From<StopSignal> for StreamEnd {
    fn from(stop: StopSignal) -> Self {
        match stop {
            StopSignal::Cancel(action) => Self::Cancelled(action),
            StopSignal::Release => Self::Released,
            StopSignal::Fence => Self::Lost,
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
                stop_reason: Some(StopReason::StorageFull),
            },
            CommitError::Store(StoreError::Unavailable(_)) => Self::StoreUnavailable,
            CommitError::Store(error) => {
                Self::failed("StorageError", format!("the run cannot be stored: {error}"))
            }
            CommitError::AlreadyTerminal(_) | CommitError::Gone(_) => Self::Gone,
            CommitError::OwnershipLost { .. } => Self::Lost,
        }
    }
}
