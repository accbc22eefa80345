//! The servers that tools come from, as `/mcp/config` tells them. Runs that begin after a change know of it.

use serde_json::{Map, Value};

use super::client::Client;
use super::error::ClientError;
use crate::mcp::settings::{McpServerList, replace_servers, server_issues};

impl Client {
    /// All servers, without their secrets.
    ///
    /// # Errors
    /// [`ClientError::Absent`], and when they cannot be read.
    pub async fn get_mcp_config(&self) -> Result<McpServerList, ClientError> {
        Ok(McpServerList::of(
            &self.installation.mcp()?.servers().await?,
        ))
    }

    /// Puts these servers in the place of all. What is hidden in an answer may come back as it was shown. Programs that are not in the
    /// file yet must be launchers that the port allows, as over HTTP.
    ///
    /// # Errors
    /// [`ClientError::McpServers`] for fields that hold something else, [`McpPortError::Refused`](crate::mcp::settings::McpPortError) for
    /// what is not allowed, and as [`get_mcp_config`](Self::get_mcp_config).
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
