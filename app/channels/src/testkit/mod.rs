//! Platform in memory and random answers, for tests of the core and of embedders.

mod answers;
mod factory;
mod memory;

pub use answers::{Kinds, Numbers, answer};
pub use factory::MemoryPlatformFactory;
pub use memory::{MemoryMessage, MemoryPlatform};
