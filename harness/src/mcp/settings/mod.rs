//! Reads and changes the configured servers for clients.
//!
//! `shape` validates the fields, `secrets` redacts and restores secrets, `allowed` and `package`
//! decide which programs clients may configure, and `change` applies a request through a `port`.

mod allowed;
mod change;
mod package;
mod port;
mod program_fields;
mod secrets;
mod shape;
mod view;

pub use change::{McpServerList, replace_servers, switch_server};
pub use port::{McpChange, McpPort, McpPortError};
pub use shape::{ServerIssue, server_issues};

#[cfg(test)]
#[path = "settings_tests.rs"]
mod tests;
