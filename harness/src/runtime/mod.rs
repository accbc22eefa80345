//! The runtime kernel: what a run is, how it is admitted, executed, streamed, stored and ended. It knows no HTTP and no SQL.

pub mod actor_context;
pub mod agent;
pub mod checkpoint;
pub mod compute;
pub mod fail_points;
pub mod memory;
#[cfg(test)]
pub(crate) mod process;
pub mod runs;
pub mod serialization;
pub mod stream_bridge;
pub mod tasks;
pub mod threads;
