//! Records and ports of the application that the runtime does not need. No HTTP, no SQL.

pub mod api_keys;
pub mod assistants;
pub mod containment;
pub mod crons;
pub mod feedback;
pub mod items;
pub mod memory;
pub mod operations;
pub mod readiness;
pub mod threads;
pub mod upkeep;
pub mod usage;

#[cfg(any(test, feature = "testkit"))]
pub mod testkit;
