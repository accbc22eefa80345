//! Flows: graphs of agents that are written as YAML or JSON and run as agents of the runtime.
//!
//! Modules in the order of a flow's life: its document ([`schema`]) and the problems that it may
//! have ([`finding`]), which agents execute its nodes ([`binding`]), what a run needs of it
//! ([`compiled`]), the conditions on its edges ([`condition`]) and the agents behind its nodes
//! ([`adapter`], with the built-in kinds in [`adapters`]). A run is decided by the [`machine`] and
//! performed by the [`driver`], which sends [`events`]. An [`agent`] runs a flow in the runtime.

pub mod adapter;
pub mod adapters;
pub mod agent;
pub mod assets;
pub mod binding;
mod bounded;
pub mod compile;
pub mod compiled;
pub mod condition;
pub mod documents;
pub mod drawing;
pub mod driver;
pub mod events;
pub mod finding;
pub mod kinds;
pub mod machine;
pub mod prompt;
pub mod schema;
pub mod structured_output;
#[cfg(any(test, feature = "testkit"))]
pub mod testkit;
pub mod validate;
