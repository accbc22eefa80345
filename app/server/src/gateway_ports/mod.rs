//! Implementations of the gateway's ports.

mod assist;
pub(crate) mod catalog;
pub(crate) mod thread_files;
