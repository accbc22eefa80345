//! The lead agent: the one that talks with the user.

mod factory;
mod guards;
mod options;
mod prompt;
mod sections;

pub use factory::{LEAD_AGENT, LeadAgentSpec, LeadAgents};
pub use guards::Guards;
pub use prompt::{PromptFacts, system_prompt};
