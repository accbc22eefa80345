//! Kind `pi-mono`: the contract of adapters, and tests against hostile servers.
#![cfg(feature = "http")]
#![expect(clippy::unwrap_used, reason = "helpers of tests are tests too")]

#[path = "flow_cases/http_server.rs"]
mod http_server;
mod pi_mono;
#[path = "flow_cases/pi_mono_kit.rs"]
mod pi_mono_kit;
