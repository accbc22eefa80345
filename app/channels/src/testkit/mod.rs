//! Platform in memory, for tests of the core and of embedders.

mod factory;
mod memory;

pub use factory::MemoryPlatformFactory;
pub use memory::{MemoryMessage, MemoryPlatform};
