//! Runs: their description, record and status, the verbs on them, and the ports to the stores that keep them.
//!
//! A run's way, file by file: [`RunsFacade`] takes a [`RunSpec`]; `planner` decides; [`RunRegistry`] admits; `supervisor`
//! launches; `execution` runs; `stream_service` and `wait_service` tell its viewers.

mod bell;
#[cfg(test)]
mod bridge_kit;
mod callbacks;
mod closing;
mod error;
mod execution;
mod facade;
mod keeper;
mod live;
mod looks;
mod membership;
mod message_limits;
mod observer;
mod parts;
mod patience;
mod plan;
mod planner;
mod queue;
mod record;
mod recovery;
mod registry;
mod settling;
mod slot;
mod spec;
mod status;
pub mod store;
mod stored_end;
mod stream_service;
mod supervisor;
mod thread_service;
mod ttl;
mod wait_service;

pub use bell::{NodeBell, Ring};
pub use error::RunError;
pub use facade::RunsFacade;
pub use live::{RunOutcome, RunValues};
pub use membership::LeaseView;
pub use observer::{LifecycleKind, NullObserver, RunLifecycleEvent, RunObserver};
pub use parts::{RunLimits, RuntimeParts};
pub use plan::ExecutionPlan;
pub use planner::plan;
pub use record::{LOST_ERROR, RunCompletionData, RunRecord, ThreadStatus};
pub use recovery::{ATTEMPTS_EXHAUSTED, NODE_LOST, ORPHAN_RECOVERED, ROLLED_BACK};
pub use registry::RunRegistry;
pub use slot::{Verdict, verdict};
pub use spec::{
    CancelAction, CheckpointRef, DisconnectMode, Durability, IfNotExists, MultitaskStrategy,
    NodeSelector, Recovery, RunCommand, RunConfig, RunInput, RunScope, RunSpec, StreamMode,
    StreamModes, Visit,
};
pub use status::{InvalidTransition, RunStatus};
pub use store::RunListQuery;
pub use stream_service::RunStream;
pub use supervisor::RunHandle;
pub use thread_service::{ThreadCursor, ThreadEventId, ThreadItem};
pub use ttl::{Expiry, ThreadTtl};
pub use wait_service::WaitOutcome;

#[cfg(test)]
#[path = "runs_tests.rs"]
mod tests;
