//! Transports against a local server.

#[cfg(feature = "testkit")]
mod contract;
mod deepseek;
mod http;
mod kit;
mod trust;
