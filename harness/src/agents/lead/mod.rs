//! The lead agent, which converses with the user.

mod assembly;
mod configured;
mod factory;
mod guards;
mod options;
mod persona;
mod prompt;
mod sections;
mod skills;
mod spec;

#[cfg(test)]
mod custom_tests;

pub use configured::{
    DEFAULT_FILE_TOOLS, FILE_TOOLS, bash_tool, configured_models, file_tool, kind_of,
};
pub use factory::{LEAD_AGENT, LeadAgents};
pub use guards::Guards;
pub use prompt::{Delegation, PromptFacts, system_prompt};
pub(crate) use sections::deferred_tools;
pub use skills::AgentSkills;
pub use spec::LeadAgentSpec;

// Former names, for crates that were written against them.
#[doc(hidden)]
pub use crate::agents::lead::DEFAULT_FILE_TOOLS as USUAL_FILE_TOOLS;
