//! Files of threads, uploads, artifacts, documents and skills, and the sandboxes that commands run in.

pub mod artifacts;
#[cfg(feature = "child-process")]
pub mod child_process;
pub mod documents;
pub mod sandbox;
pub mod skills;
#[cfg(any(test, feature = "testkit"))]
pub mod testkit;
pub mod uploads;
