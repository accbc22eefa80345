//! The DeerFlow runtime kernel and agent framework, usable with no server at all.
//!
//! Modules in reading order: what a conversation is ([`messages`], [`state`]), how a run of it lives ([`runtime`]), what an
//! agent may use ([`models`], [`tools`], [`sandbox`]), and how an agent is put together ([`middlewares`], [`agents`], [`subagents`]).
//! A layer knows only the layers before it; `cargo xtask boundary` checks that.

pub mod clock;
pub mod config;
mod host_file;
pub mod ids;
pub mod messages;
#[cfg(feature = "http")]
pub mod net;
pub mod state;
mod turns;

pub mod runtime;

#[cfg(feature = "acp")]
pub mod acp;
pub mod artifacts;
#[cfg(feature = "config-file")]
pub mod config_file;
pub mod documents;
#[cfg(feature = "mcp")]
pub mod mcp;
pub mod memory;
pub mod models;
#[cfg(feature = "mcp")]
pub mod programs;
pub mod sandbox;
pub mod skills;
pub mod tools;
pub mod uploads;

pub mod agents;
pub mod middlewares;
pub mod subagents;

pub mod client;

#[cfg(any(test, feature = "testkit"))]
pub mod testkit;
