//! Presence of a followed stream at the server.

use std::time::Duration;

use tokio::time::Instant;

/// Presence at the server of the events that this node has seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Presence {
    /// It has them.
    Present,
    /// It lacks some since this time. The publisher may send them again.
    Missing(Instant),
    /// It lacked them for too long: viewers get a gap.
    Lost,
}

impl Presence {
    /// Records that the server lacks events at `now`; they are lost after `timeout`.
    pub(super) fn missed(self, now: Instant, timeout: Duration) -> Self {
        let since = match self {
            Self::Lost => return Self::Lost,
            Self::Missing(since) => since,
            Self::Present => now,
        };
        if now.saturating_duration_since(since) >= timeout {
            Self::Lost
        } else {
            Self::Missing(since)
        }
    }

    /// Records that the durable log has the missing events.
    pub(super) fn found_in_log(self) -> Self {
        match self {
            Self::Missing(_) => Self::Present,
            other => other,
        }
    }
}
