//! `/assistants`: one per agent that the configuration knows; they are made by it and cannot be changed here.

use axum::Json;
use axum::extract::State;
use axum::response::IntoResponse;
use harness::clock::iso;
use harness::runtime::agent::AssistantInfo;
use harness::state::{CHANNELS, Reducer};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::{Answer, App, Reply, paging};
use crate::dialect::Dialect;
use crate::error::ApiError;
use crate::extract::{Ids, OptionalBody, Query};
use crate::input::assistant_uuid;
use crate::state::GatewayState;
use crate::wire::select;

fn assistant_json(state: &GatewayState, info: &AssistantInfo, dialect: Dialect) -> Value {
    let id = if dialect.is_platform() { assistant_uuid(&info.name).to_string() } else { info.name.clone() };
    let made = iso(state.started_at);
    json!({
        "assistant_id": id,
        "graph_id": info.name,
        "name": info.name,
        "config": {},
        "context": {},
        "metadata": { "created_by": "system" },
        "description": info.description,
        "created_at": made,
        "updated_at": made,
        "version": 1,
    })
}

/// The assistant of the path. Only some routes of the platform take a name for an id.
async fn find(state: &GatewayState, ids: &Ids, dialect: Dialect, by_name: bool) -> Result<AssistantInfo, ApiError> {
    let sent = ids.text("assistant_id");
    let uuid = Uuid::parse_str(sent).ok();
    if uuid.is_none() && dialect.is_platform() && !by_name {
        return Err(ApiError::Unprocessable("Invalid assistant ID: must be a UUID".to_owned()));
    }
    let all = state.assistants.list().await;
    let found = all.into_iter().find(|info| info.name == sent || uuid.is_some_and(|uuid| assistant_uuid(&info.name) == uuid));
    found.ok_or_else(|| ApiError::AssistantNotFound(sent.to_owned()))
}

/// `POST /assistants/search`.
pub(crate) async fn search(State(state): App, dialect: Dialect, OptionalBody(mut body): OptionalBody) -> Reply {
    let limit = body.number("limit", 1..=1000).unwrap_or(10) as usize;
    let offset = body.number("offset", 0..=u64::from(u32::MAX)).unwrap_or(0) as usize;
    let graph = body.text("graph_id");
    let name = body.text("name");
    let metadata = body.object("metadata").unwrap_or_default();
    let fields = body.texts("select").unwrap_or_default();
    body.finish()?;
    let all = state.assistants.list().await;
    if let Some(graph) = graph.as_ref().filter(|graph| dialect.is_platform() && all.iter().all(|info| info.name != **graph)) {
        let names: Vec<&str> = all.iter().map(|info| info.name.as_str()).collect();
        return Err(ApiError::NotFound(format!("Graph '{graph}' not found. Expected one of: {names:?}")));
    }
    let matches = |info: &AssistantInfo| {
        graph.as_ref().is_none_or(|graph| info.name == *graph)
            && name.as_ref().is_none_or(|name| info.name.to_lowercase().contains(&name.to_lowercase()))
            && metadata.iter().all(|(key, value)| key == "created_by" && value == "system")
    };
    let found: Vec<Value> = all.iter().filter(|info| matches(info)).map(|info| assistant_json(&state, info, dialect)).collect();
    let page: Vec<Value> = found.into_iter().skip(offset).take(limit).map(|assistant| select(assistant, &fields)).collect();
    let headers = paging(offset, limit, page.len());
    let mut response = Json(page).into_response();
    super::threads::add_headers(&mut response, headers);
    Ok(response)
}

/// `POST /assistants/count`.
pub(crate) async fn count(State(state): App) -> Answer {
    Ok(Json(json!(state.assistants.list().await.len())))
}

/// `GET /assistants/{id}`.
pub(crate) async fn get(State(state): App, dialect: Dialect, ids: Ids) -> Answer {
    let info = find(&state, &ids, dialect, false).await?;
    Ok(Json(assistant_json(&state, &info, dialect)))
}

/// `GET /assistants/{id}/graph`: the nodes that runs can be stopped at, one after the other.
pub(crate) async fn graph(State(state): App, dialect: Dialect, ids: Ids, query: Query) -> Answer {
    let xray = query.get("xray").unwrap_or("false").to_ascii_lowercase();
    if !matches!(xray.as_str(), "true" | "false") && !xray.parse::<u32>().is_ok_and(|depth| depth > 0) {
        return Err(ApiError::Unprocessable("xray must be true, false or a positive number".to_owned()));
    }
    let info = find(&state, &ids, dialect, true).await?;
    let agent = state.assistants.resolve(&info.name, &Map::new()).await?;
    let names = agent.nodes();
    let node = |name: &str| json!({ "id": name, "type": "runnable", "data": { "name": name } });
    let mut nodes = vec![node("__start__")];
    nodes.extend(names.iter().map(|name| node(name)));
    nodes.push(json!({ "id": "__end__" }));
    Ok(Json(json!({ "graph_id": info.name, "nodes": nodes, "edges": edges(&names) })))
}

/// The loop of an agent: its model leads to tools and back, or to the end.
fn edges(names: &[String]) -> Vec<Value> {
    let has = |name: &str| names.iter().any(|known| known == name);
    if !has("model") {
        return vec![json!({ "source": "__start__", "target": names.first().map_or("__end__", String::as_str) })];
    }
    let mut edges =
        vec![json!({ "source": "__start__", "target": "model" }), json!({ "source": "model", "target": "__end__", "conditional": true })];
    if has("tools") {
        edges.push(json!({ "source": "model", "target": "tools", "conditional": true }));
        edges.push(json!({ "source": "tools", "target": "model" }));
    }
    edges
}

/// `GET /assistants/{id}/schemas`: what a thread's state holds.
pub(crate) async fn schemas(State(state): App, dialect: Dialect, ids: Ids) -> Answer {
    let info = find(&state, &ids, dialect, false).await?;
    let message = json!({ "type": "object", "required": ["type", "content"], "additionalProperties": true });
    let mut properties = Map::from_iter([("messages".to_owned(), json!({ "type": "array", "items": message }))]);
    for (name, reducer) in CHANNELS {
        let schema = match reducer {
            Reducer::Union => json!({ "type": "array" }),
            Reducer::MergeMap | Reducer::SameSandbox => json!({ "type": "object" }),
            _ => json!({}),
        };
        properties.insert((*name).to_owned(), schema);
    }
    let schema = json!({ "title": info.name, "type": "object", "properties": properties });
    Ok(Json(json!({
        "graph_id": info.name,
        "input_schema": schema,
        "output_schema": schema,
        "state_schema": schema,
        "config_schema": { "type": "object", "properties": {} },
        "context_schema": { "type": "object", "properties": {} },
    })))
}
