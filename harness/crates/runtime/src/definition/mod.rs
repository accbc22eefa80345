//! Definitions of runs: request, record, status, stop reason and limits, the content of their
//! journal, and the error of their stores.

mod event_content;
mod limits;
mod presentation;
pub(crate) mod read_retry;
mod record;
mod request;
mod request_echo;
mod request_key;
mod run_failure;
mod status;
mod stop_reason;
mod store_error;
mod stream_modes;
mod ttl;

pub use event_content::EventContent;
pub use limits::{RunLimits, UserRunLimits};
pub use presentation::RunPresentation;
pub use record::{LOST_ERROR, RunCompletionData, RunRecord, ThreadStatus};
pub use request::{
    CancelAction, CheckpointRef, DisconnectMode, Durability, GotoTarget, IfNotExists,
    MultitaskStrategy, NodeSelector, Recovery, RunConfig, RunInput, RunRequest, RunScope,
    ThreadCommand,
};
pub use request_echo::RequestEcho;
pub use request_key::RequestKey;
pub(crate) use run_failure::RunFailure;
pub use status::{InvalidTransition, RunStatus};
pub use stop_reason::{ATTEMPTS_EXHAUSTED, NODE_LOST, ORPHAN_RECOVERED, ROLLED_BACK, StopReason};
pub use store_error::StoreError;
pub use stream_modes::{StreamMode, StreamModes};
pub use ttl::{Expiry, ThreadTtl};
