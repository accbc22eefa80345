//! `/mcp`: the servers that agents get tools from, for the installation's owner to read and change.

mod allowed;
mod package;
mod secrets;
mod shape;
mod shown;

use axum::Json;
use axum::extract::State;
use serde_json::{Map, Value, json};

use super::{Answer, App};
use crate::access::require_admin;
use crate::error::ApiError;
use crate::extract::{Body, Ids, Query};
use crate::ports::McpPortError;
use crate::reads::require_thread;

/// What is said to anybody else.
const OWNERS: &str = "Admin privileges required to manage MCP configuration.";

/// `GET /mcp/config`.
pub(crate) async fn get(State(state): App) -> Answer {
    require_admin(OWNERS)?;
    answer(&state.mcp.servers().await?)
}

/// `PUT /mcp/config`: the servers whole. What is hidden in an answer may come back as it was shown.
pub(crate) async fn put(State(state): App, Body(mut body): Body) -> Answer {
    require_admin(OWNERS)?;
    let new = shape::servers(&mut body);
    body.finish()?;
    let launchers = state.mcp.launchers();
    let changed = state.mcp.change(Box::new(move |stored| {
        *stored = replaced(stored, new, &launchers).map_err(McpPortError::Refused)?;
        Ok(())
    }));
    answer(&changed.await?)
}

/// The fields that say which program a server is, besides its variables.
const PROGRAM: [&str; 4] = ["command", "args", "cwd", "starts_in_workspace"];

/// What an entry says in a field; an empty text or list says as much as none, and so does a switch that is off.
fn said<'a>(entry: &'a Value, field: &str) -> Option<&'a Value> {
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
fn replaced(stored: &Map<String, Value>, new: Map<String, Value>, launchers: &[String]) -> Result<Map<String, Value>, String> {
    let restore = |(name, server): (String, Value)| {
        let before = stored.get(&name);
        let server = secrets::restored(server, before).map_err(|why| format!("{why} (server '{name}')"))?;
        allowed::check(&name, &server, before, launchers)?;
        Ok((name, server))
    };
    new.into_iter().map(restore).collect()
}

/// `PATCH /mcp/config`: switches one server.
pub(crate) async fn patch(State(state): App, Body(mut body): Body) -> Answer {
    require_admin(OWNERS)?;
    let name = body.required_text("server_name");
    if name.is_empty() && body.value("server_name").is_some_and(Value::is_string) {
        body.refuse::<()>("string_too_short", "server_name", "String should have at least 1 character", &name.as_str().into());
    }
    if body.value("enabled").is_none() {
        body.missing("enabled");
    }
    let enabled = body.flag("enabled").unwrap_or_default();
    body.finish()?;
    let changed = state.mcp.change(Box::new(move |stored| match stored.get_mut(&name).and_then(Value::as_object_mut) {
        Some(server) => {
            server.insert("enabled".to_owned(), enabled.into());
            Ok(())
        }
        None => Err(McpPortError::Unknown(format!("MCP server '{}' not found", name.chars().take(80).collect::<String>()))),
    }));
    answer(&changed.await?)
}

/// `POST /mcp/cache/reset`: ends all conversations with servers, and has the next run ask them anew.
pub(crate) async fn reset(State(state): App) -> Answer {
    require_admin(OWNERS)?;
    state.mcp.reset().await;
    Ok(Json(json!({ "success": true, "message": "The tools of MCP servers are looked up anew." })))
}

/// `GET /threads/{t}/mcp-tasks`: no server is given tasks here, so no thread has any.
pub(crate) async fn tasks(State(state): App, ids: Ids, query: Query) -> Answer {
    query.number("limit", 1..=100)?;
    require_thread(&state, &ids.thread()?).await?;
    Ok(Json(json!([])))
}

/// `GET /threads/{t}/mcp-tasks/{id}`, and its cancel.
pub(crate) async fn task(State(state): App, ids: Ids) -> Answer {
    require_thread(&state, &ids.thread()?).await?;
    Err(ApiError::NotFound("MCP task not found".to_owned()))
}

fn answer(stored: &Map<String, Value>) -> Answer {
    let servers: Map<String, Value> = stored.iter().map(|(name, server)| (name.clone(), shown::shown(server))).collect();
    Ok(Json(json!({ "mcp_servers": servers })))
}

impl From<McpPortError> for ApiError {
    fn from(error: McpPortError) -> Self {
        match error {
            McpPortError::Refused(why) => Self::BadRequest(why),
            McpPortError::Unknown(what) => Self::NotFound(what),
            McpPortError::Failed(why) => Self::Unavailable(why),
        }
    }
}

#[cfg(test)]
#[path = "mcp_tests.rs"]
mod tests;
