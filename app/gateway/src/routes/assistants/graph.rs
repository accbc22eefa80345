//! `GET /assistants/{id}/graph` and `/subgraphs`.

use axum::Json;
use axum::extract::State;
use harness::runtime::agent::{AgentGraph, GraphEdge, GraphNode};
use serde_json::{Map, Value, json};

use super::inner_graphs::{InnerGraphs, MAX_DEPTH, expanded};
use super::of_path;
use super::schemas::schemas_json;
use crate::dialect::Dialect;
use crate::error::ApiError;
use crate::extract::{Ids, Query};
use crate::routes::{App, JsonResult};

/// Separator of the nodes in the namespace of a nested graph.
const WITHIN: char = '|';

/// Returns the agent as nodes and edges. `xray` replaces nodes that run a graph by its nodes: all,
/// or to a depth.
pub(crate) async fn graph(
    State(state): App,
    dialect: Dialect,
    ids: Ids,
    query: Query,
) -> JsonResult {
    let xray = query.get("xray").unwrap_or("false").to_ascii_lowercase();
    let depth = match (xray.as_str(), xray.parse::<usize>()) {
        ("false", _) => 0,
        ("true", _) => MAX_DEPTH,
        (_, Ok(depth)) if depth > 0 => depth.min(MAX_DEPTH),
        _ => return Err(ApiError::Unprocessable("Invalid xray value".to_owned())),
    };
    let assistant = of_path(&state, &ids, dialect, true).await?;
    let agent = state
        .agent_services
        .assistants
        .resolve(&assistant.content.graph, &assistant.content.context)
        .await?;
    let inner = InnerGraphs::read(&state, agent.graph(), depth).await;
    let AgentGraph { nodes, edges } = expanded(agent.graph(), &inner, depth);
    let begin = GraphNode::new(AgentGraph::START);
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

/// Returns the schemas of the graphs that run inside of nodes, by namespace; with `recurse` also
/// those within them. A namespace in the path selects one of them, and those within it.
pub(crate) async fn subgraphs(
    State(state): App,
    dialect: Dialect,
    ids: Ids,
    query: Query,
) -> JsonResult {
    let recurse = query.flag("recurse")?.unwrap_or_default();
    let assistant = of_path(&state, &ids, dialect, false).await?;
    let selected = ids.text("namespace");
    let depth = if recurse || !selected.is_empty() {
        MAX_DEPTH
    } else {
        1
    };
    let resolved = state
        .agent_services
        .assistants
        .resolve(&assistant.content.graph, &assistant.content.context)
        .await;
    // An assistant that cannot run has no graphs.
    let Ok(agent) = resolved else {
        return Ok(Json(json!({})));
    };
    let inner = InnerGraphs::read(&state, agent.graph(), depth).await;
    let mut all = Map::new();
    inner.walk(&agent.graph(), depth, &mut |path, name, agent| {
        let namespace = path.join(&WITHIN.to_string());
        let is_selected = selected.is_empty()
            || namespace == selected
            || (recurse && namespace.starts_with(&format!("{selected}{WITHIN}")));
        if is_selected {
            all.insert(namespace, schemas_json(name, Some(agent)));
        }
    });
    Ok(Json(Value::Object(all)))
}

fn node_json(node: &GraphNode) -> Value {
    let mut data = Map::from_iter([("name".to_owned(), Value::from(node.name.as_str()))]);
    data.extend(node.data.clone());
    let mut json = json!({ "id": node.name, "type": "runnable", "data": data });
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
