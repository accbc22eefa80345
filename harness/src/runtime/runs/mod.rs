//! Runs: their description, record and status, and the ports to the stores that keep them.

mod observer;
mod record;
mod spec;
mod status;
pub mod store;

pub use observer::{LifecycleKind, NullObserver, RunLifecycleEvent, RunObserver};
pub use record::{RunCompletionData, RunRecord, ThreadStatus};
pub use spec::{
    CancelAction, CheckpointRef, DisconnectMode, IfNotExists, MultitaskStrategy, NodeSelector, RunConfig, RunInput, RunScope, RunSpec,
    StreamMode, StreamModes,
};
pub use status::{InvalidTransition, RunStatus};
