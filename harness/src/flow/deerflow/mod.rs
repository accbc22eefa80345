//! Adapter kind `deerflow`: a turn is a run of the lead agent, a custom agent or a subagent inside
//! the task of its node.

mod agents;
mod factory;
mod lead_agents;
mod listener;
mod restriction;
mod result;
mod settings;
mod start;
mod turn;

pub use agents::{AgentTarget, NodeAgent, NodeAgents, ResolvedAgents};
pub use factory::DeerflowFactory;

#[cfg(test)]
mod run_tests;
#[cfg(test)]
mod tests;

/// Name of the kind.
const KIND: &str = "deerflow";
