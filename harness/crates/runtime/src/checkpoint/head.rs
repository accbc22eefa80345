//! Identification of the newest stored state of a thread.

use deerflow_core::ids::CheckpointId;

/// Newest checkpoint of a thread and the end of its log. Two equal heads of one thread identify the
/// same messages and channels: a checkpoint's id is unique in its thread, its state does not change,
/// and the log only grows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ThreadHead {
    /// Newest checkpoint; `None` if the thread has none.
    pub checkpoint_id: Option<CheckpointId>,
    /// Last position of the thread's log, 0 if it is empty.
    pub log_tail: u64,
}
