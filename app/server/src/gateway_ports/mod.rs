//! Implementations of the gateway's ports.

mod assist;
pub(crate) mod catalog;
pub(crate) mod sign_in_rules;
pub(crate) mod thread_files;
