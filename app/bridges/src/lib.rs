//! Stream bridges: how a run's events reach its viewers, within one process or (later) through Redis.
//!
//! To add a bridge: follow the steps in [`harness::runtime::stream_bridge`], and add its arm in [`factory`].

pub mod factory;
pub mod memory;
