//! Platform in memory, for tests of the core and of embedders.

mod memory;

pub use memory::{MemoryMessage, MemoryPlatform, MemoryPlatformFactory};
