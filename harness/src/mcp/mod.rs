//! Tools of MCP servers: local processes and servers over HTTP. Servers are not trusted to answer,
//! to answer correctly, or to stay alive.
//!
//! [`McpToolbox`] provides the tools to agents. It discovers the tools of the servers in
//! `extensions_config.json` concurrently with the runs, keeps one session per thread with each
//! server that is a process, and puts a timeout on every wait: a failing server only disables its
//! own tools.

mod catalog;
mod configured;
mod decoding;
mod discovery;
mod discovery_state;
mod error;
mod http;
mod names;
mod oauth;
mod pool;
mod redacting_client;
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

pub use configured::{ConfiguredMcp, LAUNCHERS, McpConfigSource};
pub use oauth::OAuthSpec;
pub use spec::{HttpKind, Link, Secrets, ServerSpec, SpecError};
pub use toolbox::{McpConfig, McpContext, McpToolbox, McpUnavailable};

#[cfg(test)]
mod hostile_tests;
#[cfg(test)]
mod http_kit;
#[cfg(test)]
mod http_tests;
#[cfg(test)]
mod test_kit;

// Former names, for crates that were written against them.
#[doc(hidden)]
pub use crate::mcp::McpConfigSource as McpPlace;
#[doc(hidden)]
pub use crate::mcp::McpContext as McpSurroundings;
