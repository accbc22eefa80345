//! Composition root: one file per area constructs its parts from what other modules implement.

mod agents;
mod app;
pub(crate) mod bridge;
pub mod channel_operations;
mod channels;
mod client;
mod commands;
mod containers;
mod context;
pub mod database;
mod documents;
mod flows;
mod gateway;
mod items;
mod journal;
pub mod keys;
mod maintenance;
mod mcp;
mod memories;
mod metrics;
pub mod operations;
pub(crate) mod pi_mono;
mod resources;
mod role;
mod runs;
mod schedules;
mod security;
mod services;
mod sign_in;
mod skills;
mod stores;
mod web;
mod webhooks;

pub use app::App;
pub use role::Role;
