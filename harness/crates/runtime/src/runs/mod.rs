//! Runs: their requests, records and status, the facade to them, and the ports to the stores that
//! persist them.
//!
//! Path of a run through the files: [`RunsFacade`] receives a [`RunRequest`]; `planner` builds a plan;
//! `admit` admits it; `supervisor` launches it; `execution` runs it; `stream_service` and
//! `wait_service` report to its subscribers and waiting callers.

mod active_run;
mod admission_decision;
mod admit;
#[cfg(test)]
mod bridge_kit;
mod callbacks;
mod cancel;
mod dispatch_wake;
mod dispatcher;
mod end_commit;
mod error;
mod execution;
mod facade;
mod finalization_guard;
mod finalizer;
mod join;
mod lease_keeper;
mod limits;
mod lost_input;
mod message_limits;
mod node_lease;
mod node_notifier;
mod observer;
mod orphaned_attempt;
mod plan;
mod planner;
mod ports;
mod presentation;
mod record;
mod recovery;
mod registry;
mod request;
mod resubscribe;
mod runtime;
mod status;
mod status_poller;
mod stop_reason;
pub mod store;
mod stream_modes;
mod stream_service;
mod supervisor;
mod takeover_decision;
mod terminal_fallback;
mod terminate;
mod thread_cursor;
mod thread_service;
mod ttl;
mod wait_service;

pub use active_run::{RunOutcome, RunValues};
pub use admission_decision::{AdmissionDecision, decide_admission};
pub use error::RunError;
pub use facade::RunsFacade;
pub use limits::RunLimits;
pub use node_lease::LeaseStatus;
pub use node_notifier::{NodeNotifier, WakeSignal};
pub use observer::{LifecycleKind, NullObserver, RunLifecycleEvent, RunObserver};
pub use plan::RunPlan;
pub use planner::plan;
pub use ports::RuntimePorts;
pub use presentation::RunPresentation;
pub use record::{LOST_ERROR, RunCompletionData, RunRecord, ThreadStatus};
pub use registry::RunRegistry;
pub use request::{
    CancelAction, CheckpointRef, DisconnectMode, Durability, GotoTarget, IfNotExists,
    MultitaskStrategy, NodeSelector, Recovery, RunConfig, RunInput, RunRequest, RunScope,
    ThreadCommand,
};
pub use runtime::Runtime;
pub use status::{InvalidTransition, RunStatus};
pub use stop_reason::{ATTEMPTS_EXHAUSTED, NODE_LOST, ORPHAN_RECOVERED, ROLLED_BACK};
pub use store::RunListQuery;
pub use stream_modes::{StreamMode, StreamModes};
pub use stream_service::RunStream;
pub use supervisor::RunHandle;
pub use thread_cursor::{ThreadCursor, ThreadEventId};
pub use thread_service::ThreadItem;
pub use ttl::{Expiry, ThreadTtl};
pub use wait_service::WaitOutcome;

// Former names, for crates that were written against them.
#[doc(hidden)]
pub use crate::runs::AdmissionDecision as Verdict;
#[doc(hidden)]
pub use crate::runs::GotoTarget as Visit;
#[doc(hidden)]
pub use crate::runs::LeaseStatus as LeaseView;
#[doc(hidden)]
pub use crate::runs::NodeNotifier as NodeBell;
#[doc(hidden)]
pub use crate::runs::RunPlan as ExecutionPlan;
#[doc(hidden)]
pub use crate::runs::RunRequest as RunSpec;
#[doc(hidden)]
pub use crate::runs::RuntimePorts as RuntimeParts;
#[doc(hidden)]
pub use crate::runs::ThreadCommand as RunCommand;
#[doc(hidden)]
pub use crate::runs::WakeSignal as Ring;
#[doc(hidden)]
pub use crate::runs::decide_admission as verdict;

#[cfg(test)]
#[path = "runs_tests.rs"]
mod tests;
