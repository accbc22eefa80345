//! Helpers of the tests of this crate: runtimes over in-memory stores, scripted agents, and a
//! recording bridge.

mod counting_checkpointer;
mod facade;
mod recording_bridge;
mod scripted_agents;
mod text_chunk;
mod two_steps;

pub(crate) use counting_checkpointer::CountingCheckpointer;
pub(crate) use facade::*;
pub(crate) use recording_bridge::RecordingBridge;
pub(crate) use scripted_agents::Agents;
pub(crate) use text_chunk::text_chunk;
pub(crate) use two_steps::*;
