//! Agents: the loop, the lead agent, and the catalog that finds them by name.

pub mod agent_loop;
pub mod aids;
mod builder;
mod catalog;
#[cfg(feature = "conformance")]
pub mod conformance;
pub mod custom;
pub mod lead;
mod nested;

pub use builder::AgentBuilder;
pub use catalog::{AgentSource, StaticResolver};
pub use nested::{NestedEnd, NestedListener, kept, run_nested, run_nested_within};

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
