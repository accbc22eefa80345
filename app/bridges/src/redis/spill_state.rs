//! State of the durable log of a stream, as its publisher knows it.

use super::stream_head::StreamHead;

/// Trim position if no durable log accepts events: a sequence number that no run reaches.
const NO_TRIM_LIMIT: u64 = 1 << 50;

/// The durable log's part of a stream, as the publisher of the stream knows it.
#[derive(Debug, Default)]
pub(super) struct SpillState {
    /// `true` if the log accepts events of this run.
    pub(super) accepted: bool,
    /// `true` if the last write failed.
    pub(super) failing: bool,
    /// Sequence number of the newest logged event. The log has all events between the server's
    /// newest event and this one. 0 if no event was logged.
    pub(super) logged: u64,
    /// `true` if the log has the end of the run.
    pub(super) ended: bool,
    /// The server need not hold events up to this one: it trimmed them before this node claimed the
    /// stream, or they were copied to the log.
    pub(super) oldest: u64,
    /// Events up to this one that are not at the server are lost: neither the log nor this node has
    /// them.
    pub(super) missing: u64,
    /// `true` if a spill task is running.
    pub(super) writing: bool,
}

impl SpillState {
    /// Creates the state of a stream without logged events; `durable` is `true` if there is a
    /// durable log.
    pub(super) fn at(durable: bool, head: &StreamHead) -> Self {
        Self {
            accepted: durable,
            oldest: head.first.saturating_sub(1),
            ..Self::default()
        }
    }

    /// Returns the sequence number up to which the server may trim.
    pub(super) fn trims_up_to(&self) -> u64 {
        if self.accepted {
            self.oldest
        } else {
            NO_TRIM_LIMIT
        }
    }

    /// Returns `true` if the log accepts events of this run and its last write succeeded.
    pub(super) fn is_available(&self) -> bool {
        self.accepted && !self.failing
    }
}
