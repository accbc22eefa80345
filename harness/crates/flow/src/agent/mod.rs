//! Runs a flow as an agent of the runtime: its values are state channels, its supersteps are
//! checkpoints, its events are streams.

mod flow_agent;
mod graph;
mod input;
mod journal;
mod levels;
mod node_write;
mod pending;
mod result;
mod saved_flow;
mod schemas;
mod session_log;
mod start;
mod step_changes;
mod steps;
mod tasks;
mod turn_calls;
mod turn_log;
mod usage;

pub use flow_agent::{FlowAgent, FlowDependencies};
