//! Agents: the loop, the lead agent, and the catalog that finds them by name.

pub mod agent_loop;
mod builder;

pub use builder::AgentBuilder;

#[cfg(test)]
pub(crate) mod test_support;
