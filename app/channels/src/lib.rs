//! Bots on chat platforms.
//!
//! A [`platform::Platform`] adapter turns the protocol of one chat platform into events and
//! messages. The rest of the crate is the same for all of them: it stores each event before the
//! platform gets its acknowledgement, runs the agent, streams the answer and delivers the final
//! text exactly once as far as the platform allows it.

mod account;
mod bot;
mod calls;
mod commands;
mod config;
pub mod dingtalk;
pub mod discord;
pub mod feishu;
mod http;
mod import;
mod keys;
pub mod markup;
mod measures;
mod outbox;
mod people;
pub mod platform;
mod platforms;
mod service;
mod session;
pub mod slack;
pub mod socket;
pub mod telegram;
mod turn;
pub mod wecom;
mod words;

#[cfg(any(test, feature = "testkit"))]
pub mod testkit;

#[cfg(test)]
mod acme;
#[cfg(test)]
mod core_tests;
#[cfg(test)]
mod simulation;

pub use config::{Busy, ChannelEntry, ChannelsConfig, ConnectionRules, Rules, SessionLayer};
pub use http::http_client;
pub use platforms::platforms;
pub use service::{
    ChannelInspector, ChannelParts, ChannelService, CredentialKey, InspectedChannel, KeyError,
};

// The adapter of the documentation names the crate as others do.
#[cfg(test)]
extern crate self as deerflow_channels;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/channels.md")]
struct ChannelsChapter;
