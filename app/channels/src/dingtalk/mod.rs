//! Adapter of DingTalk: stream mode and the REST API of robots.

mod answers;
mod api;
mod bodies;
mod connection;
mod decode;
#[cfg(any(test, feature = "testkit"))]
pub(crate) mod decoding_kit;
mod downloads;
mod factory;
mod frames;
mod listen;
mod platform;
mod sending;
mod settings;
mod tokens;

#[cfg(test)]
mod contract_tests;
#[cfg(test)]
mod fixture;
#[cfg(test)]
mod sending_tests;
#[cfg(test)]
mod stream_tests;

pub use factory::DingTalkFactory;
