//! Records and ports of the application that the runtime does not need. No HTTP, no SQL.

pub mod assistants;
pub mod containment;
pub mod feedback;
pub mod memory;
pub mod threads;

#[cfg(feature = "testkit")]
pub mod testkit;
