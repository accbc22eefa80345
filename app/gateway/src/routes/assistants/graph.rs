//! `GET /assistants/{id}/graph` and `/subgraphs`.

use axum::Json;
use axum::extract::State;
use harness::runtime::agent::{AgentGraph, GraphEdge, GraphNode};
use serde_json::{Value, json};

use super::of_path;
use crate::dialect::Dialect;
use crate::error::ApiError;
use crate::extract::{Ids, Query};
use crate::routes::{App, JsonResult};

/// Returns the agent as nodes and edges. Nodes are not nested, so `xray` has no effect.
pub(crate) async fn graph(
    State(state): App,
    dialect: Dialect,
    ids: Ids,
    query: Query,
) -> JsonResult {
    let xray = query.get("xray").unwrap_or("false").to_ascii_lowercase();
    if !matches!(xray.as_str(), "true" | "false")
        && !xray.parse::<u32>().is_ok_and(|depth| depth > 0)
    {
        return Err(ApiError::Unprocessable("Invalid xray value".to_owned()));
    }
    let assistant = of_path(&state, &ids, dialect, true).await?;
    let agent = state
        .agent_services
        .assistants
        .resolve(&assistant.content.graph, &assistant.content.context)
        .await?;
    let AgentGraph { nodes, edges } = agent.graph();
    let begin = GraphNode {
        name: AgentGraph::START.to_owned(),
        tools: Vec::new(),
    };
    let mut nodes: Vec<Value> = std::iter::once(&begin)
        .chain(&nodes)
        .map(node_json)
        .collect();
    nodes.push(json!({ "id": AgentGraph::END }));
    let edges: Vec<Value> = edges.iter().map(edge_json).collect();
    Ok(Json(
        json!({ "graph_id": assistant.content.graph, "nodes": nodes, "edges": edges }),
    ))
}

/// Returns the nested graphs: there are none.
pub(crate) async fn subgraphs(
    State(state): App,
    dialect: Dialect,
    ids: Ids,
    query: Query,
) -> JsonResult {
    query.flag("recurse")?;
    of_path(&state, &ids, dialect, false).await?;
    Ok(Json(json!({})))
}

fn node_json(node: &GraphNode) -> Value {
    let mut json = json!({ "id": node.name, "type": "runnable", "data": { "name": node.name } });
    if !node.tools.is_empty() {
        json["metadata"] = json!({ "__tools": node.tools });
    }
    json
}

fn edge_json(edge: &GraphEdge) -> Value {
    let mut json = json!({ "source": edge.source, "target": edge.target });
    if edge.conditional {
        json["conditional"] = true.into();
    }
    json
}
