//! The runtime kernel: definition, admission, execution, streaming, storage and end of runs. It
//! depends on neither HTTP nor SQL.

pub mod actor_context;
pub mod agent;
pub mod checkpoint;
pub mod compute;
pub mod encoding;
pub mod fail_points;
pub mod in_memory;
#[cfg(test)]
pub(crate) mod process;
pub mod runs;
pub mod stream_bridge;
pub mod tasks;
pub mod threads;
