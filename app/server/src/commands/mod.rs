//! Commands of the binary other than `serve`.

pub mod channels;
pub mod chat;
pub mod config;
pub mod db;
pub mod doctor;
pub mod flow;
pub mod keys;
pub mod mcp;
pub mod operations;
mod table;
#[cfg(test)]
mod test_telegram;
pub mod users;
