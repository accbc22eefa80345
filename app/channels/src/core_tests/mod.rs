//! Tests of the core with a platform, stores and a runtime in memory.

mod conversations;
mod delivery;
mod flaky_outbox;
mod operations;
mod people;
mod rig;
mod runs;
mod strangers;

pub(crate) use rig::{CreatedThreads, config};
