//! Contract suites that every implementation of a port runs, and fixtures for tests.

pub mod custom_agents;
#[cfg(test)]
mod simulation;
pub mod thread_index;
mod tool_context;

pub use deerflow_runtime::testkit::*;
pub use deerflow_sandbox::testkit::*;
pub use tool_context::tool_context;
