//! Adapter of Slack: Socket Mode for events, Web API for messages.

mod adapter;
mod api;
mod blocks;
mod budget;
mod catch_up;
mod cursor;
#[cfg(any(test, feature = "testkit"))]
pub(crate) mod decoding_kit;
mod download;
mod events;
mod factory;
mod failure;
mod frames;
mod history;
mod inbox;
mod links;
mod listen;
mod live;
mod post;
mod scopes;
mod streaming;
mod text;
mod upload;

#[cfg(test)]
mod contract_tests;
#[cfg(test)]
mod fixtures;

pub use factory::SlackFactory;
