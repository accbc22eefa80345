//! `/mcp`: the servers that agents get tools from, for the installation's owner to read and change.

use axum::Json;
use axum::extract::State;
use harness::mcp::settings::{
    McpPortError, McpServerList, ServerIssue, replace_servers, server_issues, switch_server,
};
use serde_json::{Map, Value, json};

use super::{Answer, App};
use crate::access::require_admin;
use crate::error::{ApiError, Issue};
use crate::extract::{Body, Fields, Ids, Query};
use crate::reads::require_thread;

/// What is said to anybody else.
const OWNERS: &str = "Admin privileges required to manage MCP configuration.";

/// `GET /mcp/config`.
pub(crate) async fn get(State(state): App) -> Answer {
    require_admin(OWNERS)?;
    Ok(Json(json!(McpServerList::of(&state.mcp.servers().await?))))
}

/// `PUT /mcp/config`: the servers whole. What is hidden in an answer may come back as it was shown.
pub(crate) async fn put(State(state): App, Body(mut body): Body) -> Answer {
    require_admin(OWNERS)?;
    let new = servers(&mut body);
    body.finish()?;
    Ok(Json(json!(replace_servers(&*state.mcp, new).await?)))
}

/// The servers of a body.
fn servers(body: &mut Fields) -> Map<String, Value> {
    const FIELD: &str = "mcp_servers";
    if body.value(FIELD).is_none() {
        body.missing(FIELD);
    }
    let servers = body.object(FIELD).unwrap_or_default();
    for ServerIssue {
        kind,
        at,
        message,
        value,
    } in server_issues(&servers)
    {
        let at = ["body".into(), FIELD.into()]
            .into_iter()
            .chain(at)
            .collect();
        body.push(Issue::new(kind, at, message, &value));
    }
    servers
}

/// `PATCH /mcp/config`: switches one server.
pub(crate) async fn patch(State(state): App, Body(mut body): Body) -> Answer {
    require_admin(OWNERS)?;
    let name = body.required_text("server_name");
    if name.is_empty() && body.value("server_name").is_some_and(Value::is_string) {
        body.refuse::<()>(
            "string_too_short",
            "server_name",
            "String should have at least 1 character",
            &name.as_str().into(),
        );
    }
    if body.value("enabled").is_none() {
        body.missing("enabled");
    }
    let enabled = body.flag("enabled").unwrap_or_default();
    body.finish()?;
    Ok(Json(json!(
        switch_server(&*state.mcp, name, enabled).await?
    )))
}

/// `POST /mcp/cache/reset`: ends all conversations with servers, and has the next run ask them anew.
pub(crate) async fn reset(State(state): App) -> Answer {
    require_admin(OWNERS)?;
    state.mcp.reset().await;
    Ok(Json(
        json!({ "success": true, "message": "The tools of MCP servers are looked up anew." }),
    ))
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

impl From<McpPortError> for ApiError {
    fn from(error: McpPortError) -> Self {
        match error {
            McpPortError::Refused(why) => Self::BadRequest(why),
            McpPortError::Unknown(what) => Self::NotFound(what),
            McpPortError::Failed(why) => Self::Unavailable(why),
        }
    }
}
