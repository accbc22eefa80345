//! Public interface of the run kernel: the facade, and the definitions, ports and errors that its
//! callers name.
//!
//! Path of a run through the folders of this crate: [`RunsFacade`] receives a [`RunRequest`];
//! `admission` plans and admits it; `dispatch` launches it; `execution` runs it; `streaming`
//! reports to its subscribers and waiting callers; `termination` and `failover` end or continue
//! runs of processes that died.

mod deleted_threads;
mod facade;
mod facade_former;
mod node_lifecycle;
mod queue_reason;
mod run_queries;
mod run_waits;
pub mod store;
mod thread_streams;
mod visible_runs;

pub use crate::admission::{AdmissionDecision, RunPlan, UserRuns, decide_admission, plan};
pub use crate::definition::{
    ATTEMPTS_EXHAUSTED, CancelAction, CheckpointRef, DisconnectMode, Durability, Expiry,
    GotoTarget, IfNotExists, InvalidTransition, LOST_ERROR, MultitaskStrategy, NODE_LOST,
    NodeSelector, ORPHAN_RECOVERED, ROLLED_BACK, Recovery, RequestEcho, RunCompletionData,
    RunConfig, RunInput, RunLimits, RunPresentation, RunRecord, RunRequest, RunScope, RunStatus,
    StopReason, StreamMode, StreamModes, ThreadCommand, ThreadStatus, ThreadTtl, UserRunLimits,
};
pub use crate::dispatch::RunHandle;
pub use crate::failover::{RETRIED_FROM, RetryError, RetryPorts, retry_poisoned};
pub use crate::kernel::{LeaseStatus, RunError, RunOutcome, RunRegistry, RunValues, Runtime};
pub use crate::ports::{
    LifecycleKind, NoFileChanges, NodeNotifier, NullObserver, RunFileChanges, RunLifecycleEvent,
    RunListQuery, RunObserver, RuntimePorts, WakeSignal,
};
pub use crate::streaming::{
    RunStream, ThreadCursor, ThreadEventId, ThreadItem, ThreadRunItem, WaitOutcome,
};
pub use deleted_threads::DeletedThreads;
pub use facade::RunsFacade;
pub use node_lifecycle::NodeLifecycle;
pub use queue_reason::{QueueReason, queue_reasons};
pub use run_queries::RunQueries;
pub use run_waits::RunWaits;
pub use thread_streams::ThreadStreams;

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
mod access_tests;
#[cfg(test)]
mod cancel_tests;
#[cfg(test)]
mod deleted_threads_tests;
#[cfg(test)]
mod facade_tests;
