//! Reads of the durable log for a followed stream: at most one at a time, and after a silence only one
//! until the stream changes.

/// State of the reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DurableLogReads {
    /// There is no durable log.
    NoLog,
    /// The log was not read since the last change of the stream.
    Unread,
    /// The log was read since the last change of the stream.
    Read,
    /// A read is in progress. `read_before` is `true` if another one has completed since the last
    /// change of the stream.
    InProgress { read_before: bool },
}

impl DurableLogReads {
    /// Returns the state before the first read; `exists` is `true` if there is a durable log.
    pub(super) fn of(exists: bool) -> Self {
        if exists { Self::Unread } else { Self::NoLog }
    }

    /// Returns `true` if there is a durable log, which may have events that the server does not
    /// retain.
    pub(super) fn has_log(self) -> bool {
        self != Self::NoLog
    }

    /// Returns `true` if a read may begin.
    pub(super) fn may_begin(self) -> bool {
        matches!(self, Self::Unread | Self::Read)
    }

    /// Returns `true` if a read has completed since the last change of the stream.
    pub(super) fn is_read(self) -> bool {
        matches!(self, Self::Read | Self::InProgress { read_before: true })
    }

    /// Begins a read.
    pub(super) fn begun(self) -> Self {
        match self {
            Self::NoLog => Self::NoLog,
            other => Self::InProgress {
                read_before: other.is_read(),
            },
        }
    }

    /// Ends a read without a result.
    pub(super) fn ended(self) -> Self {
        match self {
            Self::InProgress { read_before: true } => Self::Read,
            Self::InProgress { read_before: false } => Self::Unread,
            other => other,
        }
    }

    /// Records the result of a read that has ended.
    pub(super) fn completed(self) -> Self {
        match self {
            Self::NoLog => Self::NoLog,
            Self::Unread | Self::Read | Self::InProgress { .. } => Self::Read,
        }
    }

    /// Records a change of the stream.
    pub(super) fn stream_changed(self) -> Self {
        match self {
            Self::NoLog => Self::NoLog,
            Self::Unread | Self::Read => Self::Unread,
            Self::InProgress { .. } => Self::InProgress { read_before: false },
        }
    }
}
