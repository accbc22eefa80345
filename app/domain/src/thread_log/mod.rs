//! Positions of runs in the event logs of their threads.

mod in_memory;

use async_trait::async_trait;
use deerflow_core::ids::{RunId, ThreadId};
use deerflow_runtime::runs::store::StoreError;

pub use in_memory::InMemoryThreadLog;

/// Positions that are reserved for a run whose number of events is not known. No run has so many
/// events.
pub const RESERVED: u64 = 1 << 32;

/// Range of a run's events in the log of its thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedRun {
    /// Id of the run.
    pub run_id: RunId,
    /// Position of its first event, from 1.
    pub first: u64,
    /// End of the run; `None` until it was read.
    pub end: Option<LoggedEnd>,
}

/// End of a run in the log of its thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedEnd {
    /// Number of positions of the run.
    pub count: u64,
    /// Status that its last event reports.
    pub status: String,
}

impl LoggedRun {
    /// Returns the first position after the run.
    pub fn next(&self) -> u64 {
        self.first + self.end.as_ref().map_or(RESERVED, |end| end.count)
    }
}

/// Stores where the events of runs are in the logs of their threads. The events themselves are not
/// stored here. A position never changes, so it is the same on all nodes and after a restart. The
/// rows of a thread are deleted with it.
#[async_trait]
pub trait ThreadLogStore: Send + Sync + std::fmt::Debug {
    /// Returns the ranges of the runs of a thread, in order of their positions.
    async fn ranges(&self, thread: &ThreadId) -> Result<Vec<LoggedRun>, StoreError>;

    /// Returns the range of a run. The first call assigns it, after all ranges of the thread.
    /// Returns `None` if the thread does not exist.
    async fn open(&self, thread: &ThreadId, run: &RunId) -> Result<Option<LoggedRun>, StoreError>;

    /// Stores the end of an opened run, unless it is known, and returns the stored one. Returns
    /// `None` if the run was not opened.
    async fn close(
        &self,
        thread: &ThreadId,
        run: &RunId,
        end: LoggedEnd,
    ) -> Result<Option<LoggedEnd>, StoreError>;
}
