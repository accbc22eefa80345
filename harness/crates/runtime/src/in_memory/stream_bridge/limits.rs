//! Limits of a log in memory, and the progress of spilling it.

use super::options::InMemoryOptions;

/// Maximum number of events that may wait for the durable log, in addition to the limits.
const MAX_PENDING_EVENTS: usize = 16 * 1024;
const MAX_PENDING_BYTES: usize = 16 * 1024 * 1024;

/// Limits of a run's log in memory.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub(super) events: usize,
    pub(super) bytes: usize,
    /// Additional events and bytes that may wait for the durable log, if there is one.
    pub(super) pending: Option<(usize, usize)>,
}

impl Limits {
    pub(super) fn of(options: &InMemoryOptions, spills: bool) -> Self {
        let pending = spills.then_some((MAX_PENDING_EVENTS, MAX_PENDING_BYTES));
        Self {
            events: options.max_events,
            bytes: options.max_bytes,
            pending,
        }
    }
}

/// Progress of spilling a run's events.
#[derive(Debug, Default)]
pub(super) struct SpillState {
    /// Sequence number up to which the durable log has all events, except those that were evicted
    /// before they were written.
    pub(super) stored_up_to: u64,
    /// `true` while a task writes to the durable log.
    pub(super) is_writing: bool,
    /// `true` if the durable log accepts no more events of this run.
    pub(super) refused: bool,
}
