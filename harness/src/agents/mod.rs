//! Agents: the loop, the lead agent, and the catalog that finds them by name.

pub mod agent_loop;
mod builder;
mod catalog;
pub mod lead;

pub use builder::AgentBuilder;
pub use catalog::{AgentSource, StaticResolver};

#[cfg(test)]
mod runtime_tests;
#[cfg(test)]
pub(crate) mod test_support;
