//! MCP servers, as `/mcp/config` returns them. Changes apply to runs that begin later.

use serde_json::{Map, Value};

use super::client::Client;
use super::error::ClientError;
use crate::mcp::settings::{McpServerList, replace_servers, server_issues};

impl Client {
    /// Returns all servers, without their secrets.
    ///
    /// # Errors
    /// [`ClientError::Absent`], and an error if they cannot be read.
    pub async fn get_mcp_config(&self) -> Result<McpServerList, ClientError> {
        Ok(McpServerList::of(
            &self.installation.mcp()?.servers().await?,
        ))
    }

    /// Replaces all servers. A redacted value stands for the stored secret. As over HTTP, new
    /// programs must be launchers that the port allows.
    ///
    /// # Errors
    /// [`ClientError::McpServers`] for invalid fields,
    /// [`McpPortError::Refused`](crate::mcp::settings::McpPortError) for changes that are not
    /// allowed, and the errors of [`get_mcp_config`](Self::get_mcp_config).
    pub async fn update_mcp_config(
        &self,
        servers: Map<String, Value>,
    ) -> Result<McpServerList, ClientError> {
        let port = self.installation.mcp()?;
        let issues = server_issues(&servers);
        if !issues.is_empty() {
            return Err(ClientError::McpServers(issues));
        }
        Ok(replace_servers(port, servers).await?)
    }
}
