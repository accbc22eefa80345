//! Admission of runs: plans them, decides whether they start, and records cancel requests.

mod admission_decision;
mod admit;
mod cancel;
pub(crate) mod message_limits;
pub(crate) mod pins;
mod planner;
mod run_plan;

pub use admission_decision::{AdmissionDecision, UserRuns, decide_admission};
pub(crate) use admit::{Admission, RunTicket};
pub use planner::plan;
pub use run_plan::RunPlan;
