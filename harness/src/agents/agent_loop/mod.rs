//! The agent loop: a state machine that decides, and a driver that acts.
//!
//! [`machine`] decides the next step without I/O; [`driver`] executes it: `model_call` calls the
//! model, `tool_batch` executes tool calls concurrently. The serialized machine is part of every
//! step event, so that another process can resume the run.

mod agent;
mod assembly;
mod at_most_once;
mod calls;
pub mod driver;
mod dropped_calls;
mod edits;
mod graph;
mod interrupts;
pub mod machine;
mod model_call;
mod nodes;
mod saved_machine;
mod sent_state;
mod start;
mod step;
mod task_meta;
mod tool_batch;

pub use agent::LoopAgent;
pub use assembly::{AgentDependencies, Assembly, ModelSettings, RetrySettings};
pub use calls::PendingCall;
pub use interrupts::NewInterrupt;
pub use machine::{LoopMachine, RunBounds, Step, ToolsDone};
pub use nodes::{LoopNodes, LoopPosition};

#[cfg(test)]
mod approval_tests;
#[cfg(test)]
mod hook_tests;
#[cfg(test)]
mod interrupt_tests;
#[cfg(test)]
mod loop_tests;

// Former names, for crates that were written against them.
#[doc(hidden)]
pub use crate::agents::agent_loop::AgentDependencies as AgentParts;
#[doc(hidden)]
pub use crate::agents::agent_loop::LoopPosition as Place;
#[doc(hidden)]
pub use crate::agents::agent_loop::NewInterrupt as NewQuestion;
#[doc(hidden)]
pub use crate::agents::agent_loop::PendingCall as DueCall;
#[doc(hidden)]
pub use crate::agents::agent_loop::RetrySettings as Patience;
