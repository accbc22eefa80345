//! Binding of a node to an agent and an adapter: `graph.nodes[*].agentId`, then
//! `agents.agentDefs[*].agentId`, then `agentDef.adapterKind`, then the registered adapter. With
//! `agentRef` the agent comes from the prompt assets.

mod effective;
mod error;
mod known_adapters;
mod resolve;

pub use error::BindingError;
pub use known_adapters::{AdapterList, KnownAdapter, KnownAdapters, settings_of_alias};
pub use resolve::{Binder, Binding, BindingSource, binding_source};

#[cfg(test)]
#[path = "binding_tests.rs"]
mod tests;
