//! Child processes that exchange messages over their standard streams: started with a minimal
//! environment, read with limits, and killed together with their descendants.

mod bounded_lines;
mod child;
mod find;
mod health;
mod redactor;
mod stderr;

pub(crate) use bounded_lines::{BoundedLines, MAX_MESSAGE_BYTES};
#[cfg(feature = "acp")]
pub(crate) use child::StdioPipes;
pub(crate) use child::{ChildTree, WorkingDir};
pub use find::find_program;
pub(crate) use health::ConnectionHealth;
#[cfg(feature = "acp")]
pub(crate) use health::TrafficQuota;
pub(crate) use redactor::SecretRedactor;
pub(crate) use stderr::StderrReader;
