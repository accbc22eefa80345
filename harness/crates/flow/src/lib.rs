//! Flows: graphs of agents that are written as YAML or JSON and run as agents of the runtime.
//!
//! Modules in the order of a flow's life: its document ([`schema`]), what a run needs of it
//! ([`compiled`]), the conditions on its edges ([`condition`]) and the agents behind its nodes
//! ([`adapter`], with the built-in kinds in [`adapters`]).

pub mod adapter;
pub mod adapters;
pub mod compiled;
pub mod condition;
pub mod schema;
pub mod structured_output;
