//! The loop of an agent: a machine that decides, and a driver that acts.
//!
//! [`machine`] says what is due and never waits; [`driver`] does it: `model_call` asks the model, `tool_batch` makes calls side
//! by side. What a machine says of itself travels in every step, so that another process can go on from there.

mod agent;
mod calls;
mod drawing;
pub mod driver;
mod dropped_calls;
mod edits;
pub mod machine;
mod model_call;
mod nodes;
mod once;
mod questions;
mod saved;
mod tool_batch;

pub use agent::{AgentParts, Assembly, LoopAgent, ModelSettings, Patience};
pub use calls::DueCall;
pub use machine::{LoopMachine, RunBounds, Step, ToolsDone};
pub use nodes::{LoopNodes, Place};
pub use questions::NewQuestion;

#[cfg(test)]
mod approval_tests;
#[cfg(test)]
mod hook_tests;
#[cfg(test)]
mod loop_tests;
#[cfg(test)]
mod question_tests;
