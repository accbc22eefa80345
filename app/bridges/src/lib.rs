//! Stream bridges: deliver the events of a run to its viewers, within one process or through Redis.
//!
//! The in-memory bridge is part of harness, where embedders find it (decision 0004). To add a
//! bridge: follow the steps in [`deerflow_runtime::stream_bridge`], and add its arm in [`factory`].

pub mod factory;
pub mod redis;
