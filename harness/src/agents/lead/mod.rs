//! The lead agent: the one that talks with the user.

mod factory;
mod guards;
mod options;
mod persona;
mod prompt;
mod sections;

#[cfg(test)]
mod custom_tests;

pub use factory::{LEAD_AGENT, LeadAgentSpec, LeadAgents};
pub use guards::Guards;
pub use prompt::{PromptFacts, system_prompt};
