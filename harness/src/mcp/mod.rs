//! Tools of MCP servers: programs of this machine and servers over HTTP, each of which may hang, lie or die.
//!
//! [`McpToolbox`] is what agents are given. It finds out beside the runs what the servers of `extensions_config.json` have, keeps a
//! conversation per thread with those that are processes, and waits for nothing without a limit: a server that misbehaves costs its
//! own tools.

mod catalog;
mod configured;
mod discreet;
mod error;
mod http;
mod names;
mod oauth;
mod pool;
mod reading;
mod result;
mod server;
mod session;
pub mod settings;
mod spec;
mod sse;
mod stdio;
mod tool;
mod toolbox;
mod transport;

pub use configured::{ConfiguredMcp, LAUNCHERS, McpPlace};
pub use oauth::OAuthSpec;
pub use spec::{HttpKind, Link, Secrets, ServerSpec, SpecError};
pub use toolbox::{McpConfig, McpSurroundings, McpToolbox, McpUnavailable};

#[cfg(test)]
mod hostile_tests;
#[cfg(test)]
mod http_kit;
#[cfg(test)]
mod http_tests;
#[cfg(test)]
mod test_kit;
