//! The port of the place where servers are configured.

use std::fmt;

use async_trait::async_trait;
use serde_json::{Map, Value};

use crate::config::ExtensionsError;

/// A change of the configured MCP servers.
pub type McpChange = Box<dyn FnOnce(&mut Map<String, Value>) -> Result<(), McpPortError> + Send>;

/// Why the MCP servers could not be read or changed. The texts are for clients.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum McpPortError {
    /// The change was not allowed.
    #[error("{0}")]
    Refused(String),
    /// There is no such server.
    #[error("{0}")]
    Unknown(String),
    /// The file cannot be used.
    #[error("{0}")]
    Failed(String),
}

impl From<ExtensionsError> for McpPortError {
    fn from(error: ExtensionsError) -> Self {
        Self::Failed(error.to_string())
    }
}

/// The configured MCP servers, as they are written: with `$VARIABLE`s and secrets.
#[async_trait]
pub trait McpPort: Send + Sync + fmt::Debug {
    /// All of them, by name.
    async fn servers(&self) -> Result<Map<String, Value>, McpPortError>;
    /// Changes them, whole or not at all, and gives what is stored then.
    async fn change(&self, change: McpChange) -> Result<Map<String, Value>, McpPortError>;
    /// Ends all conversations with them and forgets what tools they have.
    async fn reset(&self);
    /// The programs that clients may configure.
    fn launchers(&self) -> Vec<String>;
}
