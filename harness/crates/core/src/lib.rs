//! What every part of DeerFlow builds on: ids, clock, messages, thread state, tasks, actor and configuration types.

pub mod actor_context;
pub mod clock;
pub mod compute;
pub mod config;
pub mod embedder;
pub mod fail_points;
pub mod fair_permits;
pub mod host_file;
pub mod ids;
pub mod json_size;
pub mod messages;
pub mod model_error;
#[cfg(feature = "http")]
pub mod net;
pub mod permit_waits;
#[cfg(any(test, feature = "testkit"))]
pub mod process;
pub mod quota;
pub mod state;
pub mod tasks;
#[cfg(any(test, feature = "testkit"))]
pub mod testkit;
pub mod turn_weights;
