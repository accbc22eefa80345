//! Decisions about the runs of processes that died, and about cancelled queued runs.

pub(crate) mod orphaned_attempt;
pub(crate) mod recovery;
mod retry;
mod takeover_decision;

pub use retry::{RETRIED_FROM, RetryError, RetryPorts, retry_poisoned};
pub(crate) use takeover_decision::{TakeoverDecision, decide_takeover};

#[cfg(test)]
mod attempts_tests;
#[cfg(test)]
mod unconfirmed_end_tests;
