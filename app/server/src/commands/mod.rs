//! Commands of the binary other than `serve` and `mcp`.

pub mod chat;
pub mod config;
pub mod doctor;
pub mod keys;
pub mod operations;
mod table;
