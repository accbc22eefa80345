//! The lead agent, which converses with the user.

mod assembly;
mod built;
mod configured;
mod factory;
mod lead_agents;
mod options;
mod persona;
mod prompt;
mod prompt_facts;
mod request;
mod resolved;
mod sections;
mod skills;
mod spec;

#[cfg(test)]
mod custom_tests;

pub use configured::{
    DEFAULT_FILE_TOOLS, FILE_TOOLS, bash_tool, configured_models, file_tool, kind_of,
};
pub use factory::LEAD_AGENT;
pub use lead_agents::LeadAgents;
pub use prompt::system_prompt;
pub use prompt_facts::{Delegation, PromptFacts};
pub use spec::LeadAgentSpec;

pub use super::agent_skills::AgentSkills;
pub use super::guards::Guards;

// Former names, for crates that were written against them.
#[doc(hidden)]
pub use crate::agents::lead::DEFAULT_FILE_TOOLS as USUAL_FILE_TOOLS;
