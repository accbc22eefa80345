//! Agents that users make: a lead agent with a soul, a model, tools and settings of its own.

mod change;
mod memory;
mod port;
mod update;

pub use change::{change, change_default_soul, change_profile};
pub use memory::MemoryCustomAgents;
pub use port::{
    AgentName, CustomAgent, CustomAgentError, CustomAgents, InvalidAgentName, ModelOverrides,
};
pub(crate) use update::AGENT_NAME;
pub use update::{SetupAgent, SetupAgentArgs, UpdateAgent, UpdateAgentArgs};
