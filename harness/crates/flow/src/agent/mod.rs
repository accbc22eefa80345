//! Runs a flow as an agent of the runtime: its values are state channels, its supersteps are
//! checkpoints, its events are streams.

mod flow_agent;
mod input;
mod journal;
mod pending;
mod saved_flow;
mod start;
mod step_changes;
mod steps;
mod tasks;
mod turn_log;
mod usage;

pub use flow_agent::{FlowAgent, FlowDependencies};
