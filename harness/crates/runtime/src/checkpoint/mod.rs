//! Stored states of threads: the checkpoint written after a step, and the port that stores it.
//!
//! Messages form an append-only log per thread. A checkpoint contains ranges of that log and the
//! channels, so storage grows with the new content and not with the square of the conversation.

mod checkpointer;
mod external_update;
mod nested;
mod snapshot;

pub use checkpointer::{CheckpointError, Checkpointer, HistoryQuery, HistoryRetention};
pub use external_update::{ExternalUpdate, ExternalWrite, PutError};
pub use nested::{CheckpointPath, NestedState, NestedStates, nested_at, within};
pub use snapshot::{
    CheckpointMeta, CheckpointSource, CheckpointWrite, LogRange, PendingNode, PendingTask,
    Snapshot, expand, layout_of,
};

// Former names, for crates that were written against them.
#[doc(hidden)]
pub use crate::checkpoint::CheckpointPath as CheckpointPlace;
#[doc(hidden)]
pub use crate::checkpoint::ExternalUpdate as OutsideChange;
#[doc(hidden)]
pub use crate::checkpoint::ExternalWrite as OutsideWrite;
#[doc(hidden)]
pub use crate::checkpoint::HistoryRetention as KeptHistory;
