//! Platform in memory, for tests of the core and of embedders.

mod factory;
mod memory;
mod message;

pub use factory::MemoryPlatformFactory;
pub use memory::MemoryPlatform;
pub use message::MemoryMessage;
