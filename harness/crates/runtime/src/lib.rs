//! The runtime kernel: definition, admission, execution, streaming, storage and end of runs. It
//! depends on neither HTTP nor SQL.

mod admission;
pub mod agent;
mod callbacks;
pub mod checkpoint;
mod definition;
mod dispatch;
pub mod encoding;
mod execution;
mod failover;
pub mod in_memory;
mod kernel;
mod membership;
mod ports;
pub mod runs;
pub mod stream_bridge;
mod streaming;
mod termination;
#[cfg(test)]
mod test_support;
pub mod threads;
pub mod user_memory;

#[cfg(any(test, feature = "testkit"))]
pub mod testkit;

// Former names, for crates that were written against them.
#[doc(hidden)]
pub mod memory {
    //! Former name of a module.

    pub use crate::in_memory::InMemoryNodeNotifier as MemoryNodeBell;
    pub use crate::in_memory::InMemoryOptions as MemoryOptions;
    pub use crate::in_memory::InMemoryStores as MemoryStores;
    pub use crate::in_memory::InMemoryStreamBridge as MemoryStreamBridge;
    pub use crate::in_memory::*;
}
#[doc(hidden)]
pub mod serialization {
    //! Former name of a module.

    pub use crate::encoding::StreamOptions as Wanted;
    pub use crate::encoding::*;
}
