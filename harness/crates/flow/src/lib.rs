//! Flows: graphs of agents that are written as YAML or JSON and run as agents of the runtime.
//!
//! Modules in the order of a flow's life: its document ([`schema`]) and the problems that it may
//! have ([`finding`]), which agents execute its nodes ([`binding`]), what a run needs of it
//! ([`compiled`]), the conditions on its edges ([`condition`]) and the agents behind its nodes
//! ([`adapter`]).

pub mod adapter;
pub mod assets;
pub mod binding;
pub mod compile;
pub mod compiled;
pub mod condition;
pub mod drawing;
pub mod finding;
pub mod kinds;
pub mod schema;
pub mod validate;
