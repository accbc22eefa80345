//! Platform in memory, and the contract suite of platforms, for tests of the core and of adapters.

pub mod contract;
pub mod decoding;
mod factory;
mod memory;
mod message;
mod people;
mod sink;

pub use factory::MemoryPlatformFactory;
pub use memory::MemoryPlatform;
pub use message::MemoryMessage;
pub use sink::RecordingSink;

#[cfg(test)]
mod contract_tests;
#[cfg(test)]
mod decoding_tests;
