//! Agents: the agent loop, the lead agent, its subagents, custom agents, and a catalog that resolves
//! agents by name.

pub mod agent_loop;
mod agent_skills;
pub mod assist;
mod builder;
mod catalog;
#[cfg(feature = "conformance")]
pub mod conformance;
pub mod custom;
mod dynamic_tools;
mod guards;
pub mod lead;
mod nested;
pub mod subagents;
pub(crate) mod tool_restriction;

pub use builder::AgentBuilder;
pub use catalog::{AgentSource, StaticResolver};
pub use nested::{NestedEnd, NestedListener, listener_state, run_nested, run_nested_within};

#[cfg(test)]
#[cfg(feature = "providers")]
mod cut_tests;
#[cfg(test)]
#[cfg(feature = "providers")]
mod provider_tests;
#[cfg(test)]
mod runtime_tests;
#[cfg(test)]
mod takeover_tests;
#[cfg(test)]
pub(crate) mod test_support;

// Former names, for crates that were written against them.
#[doc(hidden)]
pub use crate::agents::listener_state as kept;
#[doc(hidden)]
pub mod aids {
    //! Former name of a module.

    pub use crate::agents::assist::DialogueMessage as Said;
    pub use crate::agents::assist::*;
}
