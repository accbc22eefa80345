//! Platform in memory, the contract suite of platforms, and random answers, for tests of the core and
//! of adapters.

mod abilities;
mod answers;
pub mod contract;
pub mod decoding;
mod factory;
mod faults;
mod memory;
mod message;
mod people;
mod sink;

pub use answers::{Kinds, Numbers, answer};
pub use factory::MemoryPlatformFactory;
pub use memory::MemoryPlatform;
pub use message::MemoryMessage;
pub use sink::RecordingSink;

#[cfg(test)]
mod contract_tests;
#[cfg(test)]
mod decoding_tests;
