//! Runtime kernel and agent framework of DeerFlow: everything but the server.

pub mod config;
