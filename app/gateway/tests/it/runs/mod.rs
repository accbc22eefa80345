//! Runs: create, wait, list, cancel and delete in both dialects.

mod cancel;
mod create;
mod list;
mod without_thread;

const GONE: &str = "9c909fe5-1423-4566-9403-37f8a945b29b";
