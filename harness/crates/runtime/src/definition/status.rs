//! Status of a run and its valid transitions.

use serde::{Deserialize, Serialize};

/// Status of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RunStatus {
    /// Queued: accepted and durable, but owned by no process.
    Pending,
    /// Claimed: a process owns the run, and the run occupies its thread. Clients see `pending`.
    Starting,
    /// The agent executes.
    Running,
    /// The agent finished, or stopped at an interrupt or breakpoint.
    Success,
    /// The run failed.
    Error,
    /// The run was cancelled.
    Interrupted,
    /// The run reached its time limit.
    Timeout,
}

/// Error of a status transition that is not valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a run cannot go from {from} to {to}")]
pub struct InvalidTransition {
    /// Current status.
    pub from: RunStatus,
    /// Requested status.
    pub to: RunStatus,
}

impl RunStatus {
    /// All statuses, in the order of a run's lifecycle.
    pub const ALL: [Self; 7] = [
        Self::Pending,
        Self::Starting,
        Self::Running,
        Self::Success,
        Self::Error,
        Self::Interrupted,
        Self::Timeout,
    ];

    /// Reports whether a process owns the run, so that the run occupies its thread.
    pub fn is_owned(self) -> bool {
        matches!(self, Self::Starting | Self::Running)
    }

    /// Reports whether the run has ended. A terminal status never changes.
    pub fn is_terminal(self) -> bool {
        matches!(
            self,
            Self::Success | Self::Error | Self::Interrupted | Self::Timeout
        )
    }

    /// Returns `to` if the transition is valid.
    pub fn advance(self, to: Self) -> Result<Self, InvalidTransition> {
        let legal = match self {
            Self::Pending => matches!(to, Self::Starting | Self::Interrupted | Self::Error),
            Self::Starting => matches!(
                to,
                Self::Running | Self::Pending | Self::Interrupted | Self::Error | Self::Timeout
            ),
            // The status returns to pending only when the run is released, which starts a new
            // attempt.
            Self::Running => to == Self::Pending || to.is_terminal(),
            Self::Success | Self::Error | Self::Interrupted | Self::Timeout => false,
        };
        if legal {
            Ok(to)
        } else {
            Err(InvalidTransition { from: self, to })
        }
    }

    /// Returns the name in the store.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Starting => "starting",
            Self::Running => "running",
            Self::Success => "success",
            Self::Error => "error",
            Self::Interrupted => "interrupted",
            Self::Timeout => "timeout",
        }
    }

    /// Returns the name that clients see, as defined by LangGraph Platform.
    pub fn wire(self) -> &'static str {
        match self {
            Self::Starting => "pending",
            other => other.as_str(),
        }
    }

    /// Parses the name in the store.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == word)
    }
}

impl std::fmt::Display for RunStatus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminal_status_has_no_transition() {
        for from in RunStatus::ALL
            .into_iter()
            .filter(|status| status.is_terminal())
        {
            for to in RunStatus::ALL {
                assert_eq!(from.advance(to), Err(InvalidTransition { from, to }));
            }
        }
    }

    #[test]
    fn success_is_reachable_only_from_running() {
        assert!(RunStatus::Pending.advance(RunStatus::Success).is_err());
        assert!(RunStatus::Starting.advance(RunStatus::Success).is_err());
        assert_eq!(
            RunStatus::Running.advance(RunStatus::Success),
            Ok(RunStatus::Success)
        );
    }

    #[test]
    fn status_names_roundtrip() {
        for status in RunStatus::ALL {
            assert_eq!(RunStatus::parse(status.as_str()), Some(status));
        }
    }
}
