//! `GET /flows/{id}` and its drawing.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::IntoResponse;
use deerflow_flow::drawing;
use harness::clock::iso;
use harness::runtime::actor_context::effective_user_id;
use serde_json::json;

use super::conditions::etag;
use super::errors::{invalid, not_found};
use crate::error::ApiError;
use crate::extract::{Ids, Query};
use crate::flows::FlowVersion;
use crate::routes::ResponseResult;
use crate::state::AgentServices;

/// Values of `format` of a drawing.
pub(crate) const GRAPH_FORMATS: &[(&str, GraphFormat)] = &[
    ("json", GraphFormat::Json),
    ("mermaid", GraphFormat::Mermaid),
];

/// Format of a drawing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GraphFormat {
    /// Nodes and edges.
    Json,
    /// Text for Mermaid.
    Mermaid,
}

/// Returns the version of a flow that the path and the query name.
pub(super) async fn requested(
    agents: &AgentServices,
    ids: &Ids,
    query: &Query,
) -> Result<FlowVersion, ApiError> {
    let slug = ids.text("flow_id");
    let number = query.number("version", 1..=u64::from(u32::MAX))?;
    let number = number.and_then(|number| u32::try_from(number).ok());
    let flow = agents
        .flows
        .version(&effective_user_id(), slug, number)
        .await?;
    flow.ok_or_else(|| not_found(slug))
}

/// Returns a flow with its text, as it was sent, and its assets.
pub(crate) async fn get(
    State(agents): State<AgentServices>,
    ids: Ids,
    query: Query,
) -> ResponseResult {
    let flow = requested(&agents, &ids, &query).await?;
    let json = json!({
        "flowId": flow.slug,
        "assistantId": format!("flow-{}", flow.slug),
        "owner": flow.owner.as_str(),
        "version": flow.version,
        "contentHash": flow.content_hash,
        "createdAt": flow.created_at.map(iso),
        "updatedAt": flow.updated_at.map(iso),
        "content": flow.content.text,
        "assets": flow.content.assets,
    });
    Ok(([etag(&flow.content_hash)], Json(json)).into_response())
}

/// Draws a flow.
pub(crate) async fn graph(
    State(agents): State<AgentServices>,
    ids: Ids,
    query: Query,
) -> ResponseResult {
    let format = query
        .word("format", GRAPH_FORMATS)?
        .unwrap_or(GraphFormat::Json);
    let flow = requested(&agents, &ids, &query).await?;
    let compiled = agents.flows.compiled(&flow).await;
    let compiled = compiled.map_err(|validation| invalid(&validation.errors))?;
    let graph = drawing::graph(&compiled);
    Ok(match format {
        GraphFormat::Json => Json(graph).into_response(),
        GraphFormat::Mermaid => {
            let kind = HeaderValue::from_static("text/plain; charset=utf-8");
            ([(header::CONTENT_TYPE, kind)], drawing::mermaid(&graph)).into_response()
        }
    })
}
