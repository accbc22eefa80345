//! The status of a run and its legal transitions.

use serde::{Deserialize, Serialize};

/// Where a run is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RunStatus {
    /// Accepted and durable; it waits for its turn or its time, and nobody owns it.
    Pending,
    /// An owner has taken it, and with it the thread's only slot. Clients see `pending`.
    Starting,
    /// The agent works.
    Running,
    /// The agent finished, or stopped at a question or breakpoint.
    Success,
    /// It failed.
    Error,
    /// Somebody cancelled it.
    Interrupted,
    /// It ran into its time limit.
    Timeout,
}

/// A change of status that may not happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a run cannot go from {from} to {to}")]
pub struct InvalidTransition {
    /// Where it is.
    pub from: RunStatus,
    /// Where it cannot go.
    pub to: RunStatus,
}

impl RunStatus {
    /// All statuses, in the order of a run's life.
    pub const ALL: [Self; 7] = [
        Self::Pending,
        Self::Starting,
        Self::Running,
        Self::Success,
        Self::Error,
        Self::Interrupted,
        Self::Timeout,
    ];

    /// Whether somebody owns the run, and so holds its thread's slot.
    pub fn is_owned(self) -> bool {
        matches!(self, Self::Starting | Self::Running)
    }

    /// Whether the run is over. Terminal states have no way out.
    pub fn is_terminal(self) -> bool {
        matches!(
            self,
            Self::Success | Self::Error | Self::Interrupted | Self::Timeout
        )
    }

    /// The next status, if the run may take it.
    pub fn advance(self, to: Self) -> Result<Self, InvalidTransition> {
        let legal = match self {
            Self::Pending => matches!(to, Self::Starting | Self::Interrupted | Self::Error),
            Self::Starting => matches!(
                to,
                Self::Running | Self::Pending | Self::Interrupted | Self::Error | Self::Timeout
            ),
            // Back to pending only by recovery, under a new attempt.
            Self::Running => to == Self::Pending || to.is_terminal(),
            Self::Success | Self::Error | Self::Interrupted | Self::Timeout => false,
        };
        if legal {
            Ok(to)
        } else {
            Err(InvalidTransition { from: self, to })
        }
    }

    /// The word in the store.
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

    /// The word clients see: those of the platform only.
    pub fn wire(self) -> &'static str {
        match self {
            Self::Starting => "pending",
            other => other.as_str(),
        }
    }

    /// Reads the word in the store.
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
    fn terminal_states_have_no_way_out() {
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
    fn success_is_reached_only_by_running() {
        assert!(RunStatus::Pending.advance(RunStatus::Success).is_err());
        assert!(RunStatus::Starting.advance(RunStatus::Success).is_err());
        assert_eq!(
            RunStatus::Running.advance(RunStatus::Success),
            Ok(RunStatus::Success)
        );
    }

    #[test]
    fn every_word_reads_back() {
        for status in RunStatus::ALL {
            assert_eq!(RunStatus::parse(status.as_str()), Some(status));
        }
    }
}
