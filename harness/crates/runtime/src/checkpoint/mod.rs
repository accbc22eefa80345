//! Stored states of threads: the checkpoint written after a step, and the port that stores it.
//!
//! Messages form an append-only log per thread. A checkpoint contains ranges of that log and the
//! channels, so storage grows with the new content and not with the square of the conversation.

mod checkpointer;
mod error;
mod external_update;
mod head;
mod nested;
mod pending_task;
mod snapshot;
mod source;

pub use checkpointer::{Checkpointer, HistoryQuery, HistoryRetention};
pub use error::{CheckpointError, PutError};
pub use external_update::{ExternalUpdate, ExternalWrite};
pub use head::ThreadHead;
pub use nested::{CheckpointPath, nested_at, within};
pub use pending_task::{NestedState, NestedStates, PendingNode, PendingTask};
pub use snapshot::{
    CheckpointMeta, CheckpointWrite, LogRange, Snapshot, StoredChannels, conversation_of, expand,
    layout_of,
};
pub use source::CheckpointSource;

// Former names, for crates that were written against them.
#[doc(hidden)]
pub use crate::checkpoint::CheckpointPath as CheckpointPlace;
#[doc(hidden)]
pub use crate::checkpoint::ExternalUpdate as OutsideChange;
#[doc(hidden)]
pub use crate::checkpoint::ExternalWrite as OutsideWrite;
#[doc(hidden)]
pub use crate::checkpoint::HistoryRetention as KeptHistory;
