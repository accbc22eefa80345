//! Changes of the configured servers by clients.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::port::{McpPort, McpPortError};
use super::view::view;
use super::{allowed, secrets};

/// Maximum length of a server name in an error text, in characters.
const MAX_ECHOED_NAME_CHARS: usize = 80;

/// Servers as clients see them: without secrets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct McpServerList {
    /// Servers by name.
    pub mcp_servers: Map<String, Value>,
}

impl McpServerList {
    /// Returns the client view of the stored servers.
    pub fn of(stored: &Map<String, Value>) -> Self {
        Self {
            mcp_servers: stored
                .iter()
                .map(|(name, server)| (name.clone(), view(server)))
                .collect(),
        }
    }
}

/// Replaces all servers. A redacted value in the request stands for the stored secret.
///
/// # Errors
/// [`McpPortError::Refused`] for a secret that would be sent to another destination and for a
/// program that is not allowed, and the errors of the port.
pub async fn replace_servers(
    port: &dyn McpPort,
    new: Map<String, Value>,
) -> Result<McpServerList, McpPortError> {
    let launchers = port.launchers();
    let change = port.change(Box::new(move |stored| {
        *stored = replaced(stored, new, &launchers).map_err(McpPortError::Refused)?;
        Ok(())
    }));
    Ok(McpServerList::of(&change.await?))
}

/// Enables or disables one server.
///
/// # Errors
/// [`McpPortError::Unknown`], and the errors of the port.
pub async fn switch_server(
    port: &dyn McpPort,
    name: String,
    enabled: bool,
) -> Result<McpServerList, McpPortError> {
    let change = port.change(Box::new(move |stored| {
        match stored.get_mut(&name).and_then(Value::as_object_mut) {
            Some(server) => {
                server.insert("enabled".to_owned(), enabled.into());
                Ok(())
            }
            None => Err(McpPortError::Unknown(format!(
                "MCP server '{}' not found",
                name.chars().take(MAX_ECHOED_NAME_CHARS).collect::<String>()
            ))),
        }
    }));
    Ok(McpServerList::of(&change.await?))
}

/// Returns the servers to store, or the reason of the refusal.
pub(super) fn replaced(
    stored: &Map<String, Value>,
    new: Map<String, Value>,
    launchers: &[String],
) -> Result<Map<String, Value>, String> {
    let restore = |(name, server): (String, Value)| {
        let before = stored.get(&name);
        let server = secrets::restored(server, before)
            .map_err(|error| format!("{error} (server '{name}')"))?;
        allowed::check(&name, &server, before, launchers)?;
        Ok((name, server))
    };
    new.into_iter().map(restore).collect()
}
