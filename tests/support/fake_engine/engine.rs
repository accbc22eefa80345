//! The container engine's API, as far as the backend uses it.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Path, Query, State as Shared};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, post};
use axum::{Json, Router};
use serde_json::{Value, json};

use super::{Behavior, Container, State, container_server};
use crate::local_server::LocalServer;

const PORT: &str = "8080/tcp";

pub(super) fn router(state: Arc<State>) -> Router {
    Router::new()
        .route(
            "/version",
            get(|| async { Json(json!({"Version": "27.0"})) }),
        )
        .route("/images/create", post(fetch))
        .route("/containers/json", get(list))
        .route("/containers/create", post(create))
        .route("/containers/{name}/start", post(start))
        .route("/containers/{name}/json", get(inspect))
        .route("/containers/{name}", delete(remove))
        .with_state(state)
}

fn refuse(status: u16, message: &str) -> Response {
    (
        StatusCode::from_u16(status).expect("a status"),
        Json(json!({"message": message})),
    )
        .into_response()
}

async fn fetch(Shared(state): Shared<Arc<State>>) -> Response {
    state.note("fetch");
    if state.behavior() == Behavior::NoImageAnywhere {
        return "{\"status\":\"Pulling\"}\n{\"error\":\"manifest unknown\"}\n".into_response();
    }
    state.behave(Behavior::Good);
    "{\"status\":\"Pulling\"}\n".into_response()
}

async fn create(
    Shared(state): Shared<Arc<State>>,
    Query(query): Query<Value>,
    Json(body): Json<Value>,
) -> Response {
    state.note("create");
    if matches!(
        state.behavior(),
        Behavior::NoImage | Behavior::NoImageAnywhere
    ) {
        return refuse(404, "No such image");
    }
    let name = query["name"].as_str().unwrap_or_default().to_owned();
    let mut containers = state.containers.lock();
    if containers.contains_key(&name) {
        return refuse(409, "Conflict. The container name is already in use");
    }
    containers.insert(name, Container { body, server: None });
    (StatusCode::CREATED, Json(json!({"Id": "x"}))).into_response()
}

async fn start(Shared(state): Shared<Arc<State>>, Path(name): Path<String>) -> Response {
    state.note("start");
    let Some(body) = state.order(&name) else {
        return refuse(404, "No such container");
    };
    let port = body["HostConfig"]["PortBindings"][PORT][0]["HostPort"]
        .as_str()
        .and_then(|port| port.parse().ok())
        .unwrap_or(0);
    let mounts = body["HostConfig"]["Mounts"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let text = |mount: &Value, key: &str| mount[key].as_str().unwrap_or_default().to_owned();
    let mounts = mounts
        .iter()
        .map(|mount| (text(mount, "Target"), text(mount, "Source")))
        .collect();
    let Ok(server) =
        LocalServer::start(container_server::router(state.clone(), mounts), port).await
    else {
        return refuse(500, "Bind failed: port is already allocated");
    };
    if let Some(container) = state.containers.lock().get_mut(&name) {
        container.server = Some(server);
    }
    StatusCode::NO_CONTENT.into_response()
}

async fn inspect(Shared(state): Shared<Arc<State>>, Path(name): Path<String>) -> Response {
    let containers = state.containers.lock();
    let Some(container) = containers.get(&name) else {
        return refuse(404, "No such container");
    };
    let bound = container.server.as_ref().map(
        |server| json!([{"HostIp": "127.0.0.1", "HostPort": server.address().port().to_string()}]),
    );
    Json(json!({
        "State": {"Running": container.server.is_some()},
        "Config": {"Labels": container.body["Labels"]},
        "NetworkSettings": {"Ports": {PORT: bound}},
    }))
    .into_response()
}

async fn list(Shared(state): Shared<Arc<State>>, Query(query): Query<Value>) -> Json<Value> {
    let filters: Value = query["filters"]
        .as_str()
        .and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or_default();
    let (label, value) = filters["label"][0]
        .as_str()
        .and_then(|label| label.split_once('='))
        .unwrap_or_default();
    let containers = state.containers.lock();
    let found = containers
        .iter()
        .filter(|(_, container)| container.body["Labels"][label] == value);
    Json(
        found
            .map(|(name, _)| json!({"Names": [format!("/{name}")]}))
            .collect(),
    )
}

async fn remove(Shared(state): Shared<Arc<State>>, Path(name): Path<String>) -> Response {
    state.note("remove");
    let removed = state.containers.lock().remove(&name);
    while state.behavior() == Behavior::SilentAboutRemovals {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    match removed {
        Some(_) => StatusCode::NO_CONTENT.into_response(),
        None => refuse(404, "No such container"),
    }
}
