//! Kind `pi-mono`: the contract of adapters, and tests against hostile servers.
#![cfg(feature = "http")]
#![expect(clippy::unwrap_used, reason = "helpers of tests are tests too")]

#[path = "flow_cases/http_server.rs"]
#[expect(dead_code, reason = "the cases of transports use the rest")]
mod http_server;
mod pi_mono;
#[path = "flow_cases/pi_mono_kit.rs"]
mod pi_mono_kit;
