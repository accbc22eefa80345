//! The deerflow server as a library, so that tests and embedders can use what the binary uses.

mod agents;
pub mod allocations;
pub mod allocator;
pub mod cli;
pub mod commands;
pub mod config;
pub mod embedded;
#[cfg(feature = "fail-points")]
pub mod fail_points;
mod flows;
pub mod freed_memory;
mod gateway_ports;
mod item_index;
pub mod lifecycle;
pub mod listener;
pub mod metrics;
mod migration_bar;
pub mod open_files;
pub mod own_program;
mod sandbox;
pub mod serve;
mod services;
mod skills;
pub mod telemetry;
mod user_data;
pub mod wiring;
