//! The commands of the binary that are not `serve`.

pub mod chat;
pub mod config;
pub mod doctor;
pub mod keys;
pub mod operations;
mod table;
