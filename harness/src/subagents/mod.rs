//! Subagents: agents that a lead agent sets to work with `task`, each in a conversation of its own, in the files of the thread.
//!
//! What kinds there are is data ([`kinds`]), a [`Crew`] has them assembled, and [`TaskTool`] hands one of them a task.
//! What they say travels inside of the call ([`crate::agents::run_nested`]), so their runtime is the run's: a cancel drops
//! them with it, their calls are written down as its calls are, and a run that is taken over has them go on where they stood.

mod assembly;
mod crew;
mod kind;
mod prompt;
mod report;
mod task;
mod watch;

pub use assembly::{CrewSpec, crew_for};
pub use crew::{Crew, Member};
pub use kind::{BASH, GENERAL_PURPOSE, SubagentKind, kinds};
pub use task::{TaskArgs, TaskTool};

#[cfg(test)]
mod crew_tests;
#[cfg(test)]
mod run_tests;
#[cfg(test)]
mod tests;
