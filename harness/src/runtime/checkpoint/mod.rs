//! Saved states of threads: what is written after a step, and the port that keeps it.
//!
//! Messages are an append-only log per thread. A checkpoint holds ranges of that log and the channels, so storage grows with
//! what is new and not with the square of the conversation.

mod checkpointer;
mod nested;
mod outside;
mod snapshot;

pub use checkpointer::{CheckpointError, Checkpointer, HistoryQuery, KeptHistory};
pub use nested::{CheckpointPlace, NestedState, NestedStates, nested_at, within};
pub use outside::{OutsideChange, OutsideWrite, PutError};
pub use snapshot::{
    CheckpointMeta, CheckpointSource, CheckpointWrite, LogRange, PendingNode, PendingTask,
    Snapshot, expand, layout_of,
};
