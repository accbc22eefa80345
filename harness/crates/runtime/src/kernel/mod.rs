//! State of the run kernel in one process: ports, handles of active runs, lease, wake-up signals.

mod active_run;
mod dispatch_wake;
mod external_state;
mod finalization_guard;
mod node_lease;
mod polled_runs;
mod registry;
mod run_error;
mod runtime;
mod state_size;
mod status_poller;
mod thread_heads;

pub(crate) use active_run::{ActiveRun, StopSignal};
pub use active_run::{RunOutcome, RunValues};
pub(crate) use finalization_guard::FinalizationGuard;
pub use node_lease::LeaseStatus;
pub(crate) use polled_runs::PolledRun;
pub use registry::RunRegistry;
pub use run_error::RunError;
pub use runtime::Runtime;
pub(crate) use state_size::StateSize;
#[cfg(test)]
pub(crate) use status_poller::StatusPollers;
pub(crate) use status_poller::{StatusPoller, StatusResult};
pub(crate) use thread_heads::StateAtHead;
