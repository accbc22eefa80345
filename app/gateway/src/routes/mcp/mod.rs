//! `/mcp`: the MCP servers of the installation, for administrators.

use axum::Json;
use axum::extract::State;
use deerflow_domain::accounts::AuditAction;
use harness::mcp::settings::{
    McpPortError, McpServerList, ServerIssue, replace_servers, server_issues, switch_server,
};
use serde_json::{Map, Value, json};

use super::auth::recorder::Recorder;
use super::{App, JsonResult};
use crate::error::{ApiError, Issue};
use crate::extract::{Body, Ids, Issues, Query};
use crate::guard::auth::require_admin;
use crate::queries::threads::require_thread;
use crate::requests::bodies::{McpConfig, McpSwitch};
use crate::state::AgentServices;

/// Error for all other users.
const OWNERS: &str = "Admin privileges required to manage MCP configuration.";

/// `GET /mcp/config`.
pub(crate) async fn get(State(agents): State<AgentServices>) -> JsonResult {
    require_admin(OWNERS)?;
    Ok(Json(json!(McpServerList::of(&agents.mcp.servers().await?))))
}

/// `PUT /mcp/config`: replaces the servers. Redacted values may be sent back as they were returned.
pub(crate) async fn put(
    State(agents): State<AgentServices>,
    recorder: Recorder,
    body: Body<McpConfig>,
) -> JsonResult {
    require_admin(OWNERS)?;
    let (body, mut issues) = body.parts();
    check_servers(&body.mcp_servers, &mut issues);
    issues.finish()?;
    let names: Vec<String> = body.mcp_servers.keys().cloned().collect();
    let replaced = replace_servers(&*agents.mcp, body.mcp_servers).await?;
    let names = names.join(", ");
    recorder.record(AuditAction::McpChanged, &names).await;
    Ok(Json(json!(replaced)))
}

/// Adds the issues of the servers of a body.
fn check_servers(servers: &Map<String, Value>, issues: &mut Issues) {
    for ServerIssue {
        kind,
        at,
        message,
        value,
    } in server_issues(servers)
    {
        let at = ["body".into(), "mcp_servers".into()]
            .into_iter()
            .chain(at)
            .collect();
        issues.push(Issue::new(kind, at, message, &value));
    }
}

/// `PATCH /mcp/config`: enables or disables one server.
pub(crate) async fn patch(
    State(agents): State<AgentServices>,
    recorder: Recorder,
    body: Body<McpSwitch>,
) -> JsonResult {
    require_admin(OWNERS)?;
    let (body, mut issues) = body.parts();
    if body.server_name.as_deref() == Some("") {
        issues.refuse::<()>(
            "string_too_short",
            "server_name",
            "String should have at least 1 character",
            &"".into(),
        );
    }
    issues.finish()?;
    let name = body.server_name.unwrap_or_default();
    let switched = switch_server(&*agents.mcp, name.clone(), body.enabled).await?;
    recorder.record(AuditAction::McpChanged, &name).await;
    Ok(Json(json!(switched)))
}

/// `POST /mcp/cache/reset`: closes all sessions with servers; the next run opens new ones.
pub(crate) async fn reset(State(agents): State<AgentServices>) -> JsonResult {
    require_admin(OWNERS)?;
    agents.mcp.reset().await;
    Ok(Json(
        json!({ "success": true, "message": "The tools of MCP servers will be listed again." }),
    ))
}

/// `GET /threads/{t}/mcp-tasks`: always empty, because this server creates no MCP tasks.
pub(crate) async fn tasks(State(state): App, ids: Ids, query: Query) -> JsonResult {
    query.number("limit", 1..=100)?;
    require_thread(&state, &ids.thread()?).await?;
    Ok(Json(json!([])))
}

/// `GET /threads/{t}/mcp-tasks/{id}` and its cancel: always 404.
pub(crate) async fn task(State(state): App, ids: Ids) -> JsonResult {
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
