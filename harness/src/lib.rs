//! The DeerFlow runtime kernel and agent framework, usable without a server.
//!
//! Modules in reading order: the conversation ([`messages`], [`state`]), its runs ([`runtime`]),
//! the resources of an agent ([`models`], [`tools`], [`sandbox`]), and the assembly of agents
//! ([`middlewares`], [`agents`], [`subagents`]). A layer depends only on the layers before it;
//! `cargo xtask boundary` checks that.

pub mod clock;
pub mod config;
mod fair_limiter;
mod host_file;
pub mod ids;
pub mod messages;
#[cfg(feature = "http")]
pub mod net;
pub mod state;

pub mod runtime;

#[cfg(feature = "acp")]
pub mod acp;
pub mod artifacts;
#[cfg(feature = "mcp")]
pub mod child_process;
#[cfg(feature = "config-file")]
pub mod config_file;
pub mod documents;
#[cfg(feature = "mcp")]
pub mod mcp;
pub mod models;
pub mod sandbox;
pub mod skills;
pub mod tools;
pub mod uploads;
pub mod user_memory;

pub mod agents;
pub mod middlewares;
pub mod subagents;

pub mod client;

#[cfg(any(test, feature = "testkit"))]
pub mod testkit;
