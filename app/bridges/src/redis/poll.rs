//! A poll of one stream: its request, and the action after it.

/// Request of a poll.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PollRequest {
    /// For a followed stream: the first sequence number, and the number of events to return.
    Events(u64, usize),
    /// For a published stream: checks that the server still has the events up to this number, which
    /// it had acknowledged before the poll.
    VerifyUpTo(u64),
}

impl PollRequest {
    /// Returns the events to request.
    pub(super) fn events(self) -> Option<(u64, usize)> {
        match self {
            Self::Events(from, count) => Some((from, count)),
            Self::VerifyUpTo(_) => None,
        }
    }
}

/// Action after a poll.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum PollOutcome {
    /// No action.
    UpToDate,
    /// Poll again, because there are more events.
    More,
    /// Send again the events of this publisher that the server lost.
    Lost,
}
