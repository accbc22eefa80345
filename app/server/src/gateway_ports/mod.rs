//! Implementations of the gateway's ports.

pub(crate) mod access;
mod assist;
pub(crate) mod catalog;
pub(crate) mod sign_in_rules;
pub(crate) mod thread_files;
