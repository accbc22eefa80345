//! The servers as clients read and change them.
//!
//! `shape` says what their fields must be, `secrets` hides what is secret and puts it back, `allowed` and `package` decide which
//! programs may be configured from outside, and `change` puts all of that together over a `port`.

mod allowed;
mod change;
mod package;
mod port;
mod secrets;
mod shape;
mod shown;

pub use change::{McpServerList, replace_servers, switch_server};
pub use port::{McpChange, McpPort, McpPortError};
pub use shape::{ServerIssue, server_issues};

#[cfg(test)]
#[path = "settings_tests.rs"]
mod tests;
