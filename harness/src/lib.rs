//! The DeerFlow runtime kernel and agent framework, usable with no server at all.
//!
//! Modules in reading order: what a conversation is ([`messages`], [`state`]), how a run of it lives ([`runtime`]), what an
//! agent may use ([`models`], [`tools`], [`sandbox`]), and how an agent is put together ([`middlewares`], [`agents`]).
//! A layer knows only the layers before it; `cargo xtask boundary` checks that.

pub mod clock;
pub mod config;
pub mod ids;
pub mod messages;
pub mod state;

pub mod runtime;

pub mod memory;
pub mod models;
pub mod sandbox;
pub mod tools;

pub mod agents;
pub mod middlewares;

#[cfg(any(test, feature = "testkit"))]
pub mod testkit;
