//! Child processes that exchange messages over their standard streams: started with a minimal
//! environment, read with limits, and killed together with their descendants.

mod bounded_lines;
mod child;
mod find;
mod health;
mod redactor;
mod stderr;

pub use bounded_lines::{BoundedLines, MAX_MESSAGE_BYTES};
#[cfg(feature = "child-process")]
pub use child::StdioPipes;
pub use child::{ChildTree, WorkingDir};
pub use find::find_program;
pub use health::ConnectionHealth;
#[cfg(feature = "child-process")]
pub use health::TrafficQuota;
pub use redactor::SecretRedactor;
pub use stderr::StderrReader;
