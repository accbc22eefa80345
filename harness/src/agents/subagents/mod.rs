//! Subagents: agents to which a lead agent delegates work with `task`. Each has its own
//! conversation and shares the files of the thread.
//!
//! [`kinds`] defines the kinds as data, a [`SubagentPool`] contains one built agent per kind, and
//! [`TaskTool`] delegates a task to one of them. The events of a subagent are nested in the call
//! ([`crate::agents::run_nested`]) and it runs inside the run of its lead agent: a cancel stops it,
//! its tool calls are recorded in the same call log, and after a takeover it resumes at its last
//! position.

mod assembly;
mod configured_kinds;
mod kind;
mod monitor;
mod outcome;
mod pool;
mod prompt;
mod task;

pub use assembly::{SubagentPoolSpec, build_pool};
pub use configured_kinds::{BASH, GENERAL_PURPOSE, kinds};
pub use kind::SubagentKind;
pub use pool::{Subagent, SubagentPool};
pub use task::{TaskArgs, TaskTool};

#[cfg(test)]
mod pool_tests;
#[cfg(test)]
mod run_tests;
// Former names, for crates that were written against them.
#[doc(hidden)]
pub use crate::agents::subagents::Subagent as Member;
#[doc(hidden)]
pub use crate::agents::subagents::SubagentPool as Crew;
#[doc(hidden)]
pub use crate::agents::subagents::SubagentPoolSpec as CrewSpec;
#[doc(hidden)]
pub use crate::agents::subagents::build_pool as crew_for;

#[cfg(test)]
mod tests;
