//! Stream bridges: how a run's events reach its viewers, within one process or through Redis.
//!
//! The memory bridge is part of harness, where embedders find it (decision 0004). To add a bridge: follow the steps in
//! [`harness::runtime::stream_bridge`], and add its arm in [`factory`].

pub mod factory;
pub mod redis;
