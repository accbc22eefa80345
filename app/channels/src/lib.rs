//! Bots on chat platforms.
//!
//! A [`platform::Platform`] adapter turns the protocol of one chat platform into events and
//! messages. The rest of the crate is the same for all of them: it stores each event before the
//! platform gets its acknowledgement, runs the agent, streams the answer and delivers the final
//! text exactly once as far as the platform allows it.

pub mod dingtalk;
pub mod discord;
pub mod markup;
pub mod platform;
pub mod socket;
