//! What becomes of the servers when somebody changes them.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::port::{McpPort, McpPortError};
use super::shown::shown;
use super::{allowed, secrets};

/// The most that is repeated of a name, in characters.
const SHOWN_NAME: usize = 80;

/// The servers as clients see them: without secrets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct McpServerList {
    /// The servers, by name.
    pub mcp_servers: Map<String, Value>,
}

impl McpServerList {
    /// What clients see of what is stored.
    pub fn of(stored: &Map<String, Value>) -> Self {
        Self {
            mcp_servers: stored
                .iter()
                .map(|(name, server)| (name.clone(), shown(server)))
                .collect(),
        }
    }
}

/// Puts these servers in the place of all. What is hidden in an answer may come back as it was shown.
///
/// # Errors
/// [`McpPortError::Refused`] for a secret that would go elsewhere and a program that is not allowed, and what the port says.
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

/// Switches one server.
///
/// # Errors
/// [`McpPortError::Unknown`], and what the port says.
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
                name.chars().take(SHOWN_NAME).collect::<String>()
            ))),
        }
    }));
    Ok(McpServerList::of(&change.await?))
}

/// The fields that say which program a server is, besides its variables.
pub(super) const PROGRAM: [&str; 4] = ["command", "args", "cwd", "starts_in_workspace"];

/// What an entry says in a field; an empty text or list says as much as none, and so does a switch that is off.
pub(super) fn said<'a>(entry: &'a Value, field: &str) -> Option<&'a Value> {
    let is_blank = |value: &Value| match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    };
    entry.get(field).filter(|value| !is_blank(value))
}

/// The servers as they will be stored, or what is refused.
pub(super) fn replaced(
    stored: &Map<String, Value>,
    new: Map<String, Value>,
    launchers: &[String],
) -> Result<Map<String, Value>, String> {
    let restore = |(name, server): (String, Value)| {
        let before = stored.get(&name);
        let server =
            secrets::restored(server, before).map_err(|why| format!("{why} (server '{name}')"))?;
        allowed::check(&name, &server, before, launchers)?;
        Ok((name, server))
    };
    new.into_iter().map(restore).collect()
}
