//! Tests of the core with a platform, stores and a runtime in memory.

mod conversations;
mod delivery;
mod people;
mod rig;
mod runs;
