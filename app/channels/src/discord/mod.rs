//! Adapter of Discord: gateway v10 and REST v10.

mod answers;
mod bodies;
mod calls;
mod catch_up;
mod commands;
mod connection;
mod cursor;
mod decode;
#[cfg(any(test, feature = "testkit"))]
pub(crate) mod decoding_kit;
mod downloads;
mod factory;
mod heartbeat;
mod ids;
mod limits;
mod listen;
mod places;
mod platform;
mod protocol;
mod rest;
mod rooms;
mod sending;
mod settings;
mod worker;

#[cfg(test)]
mod contract_tests;
#[cfg(test)]
mod fixture;
#[cfg(test)]
mod gateway_tests;
#[cfg(test)]
mod sending_tests;

pub use factory::DiscordFactory;
