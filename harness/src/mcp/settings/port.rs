//! Port for the storage of the server configuration.

use std::fmt;

use async_trait::async_trait;
use serde_json::{Map, Value};

use crate::config::ExtensionsError;

/// Change of the configured MCP servers.
pub type McpChange = Box<dyn FnOnce(&mut Map<String, Value>) -> Result<(), McpPortError> + Send>;

/// Failure to read or change the MCP servers. The texts are for clients.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum McpPortError {
    /// The change is not allowed.
    #[error("{0}")]
    Refused(String),
    /// There is no such server.
    #[error("{0}")]
    Unknown(String),
    /// The file cannot be read or written.
    #[error("{0}")]
    Failed(String),
}

impl From<ExtensionsError> for McpPortError {
    fn from(error: ExtensionsError) -> Self {
        Self::Failed(error.to_string())
    }
}

/// Configured MCP servers as they are written: with `$VARIABLE` references and secrets.
///
/// ```
/// use std::sync::Mutex;
///
/// use async_trait::async_trait;
/// use deerflow_harness::mcp::settings::{McpChange, McpPort, McpPortError};
/// use serde_json::{Map, Value};
///
/// /// Servers in memory, without sessions.
/// #[derive(Debug, Default)]
/// struct Servers(Mutex<Map<String, Value>>);
///
/// #[async_trait]
/// impl McpPort for Servers {
///     async fn servers(&self) -> Result<Map<String, Value>, McpPortError> {
///         Ok(self.0.lock().unwrap().clone())
///     }
///
///     async fn change(&self, change: McpChange) -> Result<Map<String, Value>, McpPortError> {
///         let mut servers = self.0.lock().unwrap();
///         let mut changed = servers.clone();
///         change(&mut changed)?;
///         servers.clone_from(&changed);
///         Ok(changed)
///     }
///
///     async fn reset(&self) {}
///
///     fn launchers(&self) -> Vec<String> {
///         vec!["npx".to_owned()]
///     }
/// }
/// ```
#[async_trait]
pub trait McpPort: Send + Sync + fmt::Debug {
    /// Returns all servers by name.
    async fn servers(&self) -> Result<Map<String, Value>, McpPortError>;
    /// Changes the servers atomically and returns the stored result.
    async fn change(&self, change: McpChange) -> Result<Map<String, Value>, McpPortError>;
    /// Closes all sessions and discards the discovered tools.
    async fn reset(&self);
    /// Returns the programs that clients may configure.
    fn launchers(&self) -> Vec<String>;
}
