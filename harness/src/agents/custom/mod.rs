//! Custom agents: lead agents for which a user defined a soul (a text that describes the agent's
//! character), a model, tools and settings.

mod change;
mod in_memory;
mod port;
mod update;

pub use change::{change, change_default_soul, change_profile};
pub use in_memory::InMemoryCustomAgents;
pub use port::{
    AgentName, CustomAgent, CustomAgentError, CustomAgents, InvalidAgentName, ModelOverrides,
};
pub(crate) use update::AGENT_NAME;
pub use update::{SetupAgent, SetupAgentArgs, UpdateAgent, UpdateAgentArgs};

// Former names, for crates that were written against them.
#[doc(hidden)]
pub use crate::agents::custom::InMemoryCustomAgents as MemoryCustomAgents;
