//! The provisioner's API: pods that mount a thread's folders, derived from the layout of the
//! installation.

use std::path::PathBuf;
use std::sync::Arc;

use axum::extract::{Path, Request, State as Shared};
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::{Value, json};

use super::{Behavior, Container, State, container_server};
use crate::local_server::LocalServer;

type Known = (Arc<State>, Arc<PathBuf>);

pub(super) fn router(state: Arc<State>, home: PathBuf) -> Router {
    Router::new()
        .route("/health", get(|| async { Json(json!({"status": "ok"})) }))
        .route("/api/sandboxes", post(create))
        .route("/api/sandboxes/{id}", get(show).delete(remove))
        .layer(from_fn_with_state(state.clone(), with_key))
        .with_state((state, Arc::new(home)))
}

async fn with_key(Shared(state): Shared<Arc<State>>, request: Request, next: Next) -> Response {
    let key = request
        .headers()
        .get("x-api-key")
        .and_then(|key| key.to_str().ok());
    if key == state.key {
        next.run(request).await
    } else {
        StatusCode::UNAUTHORIZED.into_response()
    }
}

fn pod_response(id: &str, container: &Container) -> Json<Value> {
    let url = container
        .server
        .as_ref()
        .map(|server| format!("http://{}", server.address()));
    Json(json!({"sandbox_id": id, "sandbox_url": url, "status": "Running"}))
}

async fn create(Shared((state, home)): Shared<Known>, Json(body): Json<Value>) -> Response {
    state.note("create");
    let text = |key: &str| body[key].as_str().unwrap_or_default().to_owned();
    let folder = home
        .join("users")
        .join(text("user_id"))
        .join("threads")
        .join(text("thread_id"))
        .join("user-data");
    let mounts = vec![("/mnt/user-data".to_owned(), folder.display().to_string())];
    let Ok(server) = LocalServer::start(container_server::router(state.clone(), mounts), 0).await
    else {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    let id = text("sandbox_id");
    let container = Container {
        body,
        server: Some(server),
    };
    let answer = pod_response(&id, &container).into_response();
    state.containers.lock().insert(id, container);
    answer
}

async fn show(Shared((state, _)): Shared<Known>, Path(id): Path<String>) -> Response {
    if state.behavior() == Behavior::Failing {
        return (StatusCode::INTERNAL_SERVER_ERROR, "no cluster").into_response();
    }
    match state.containers.lock().get(&id) {
        Some(container) => pod_response(&id, container).into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

async fn remove(Shared((state, _)): Shared<Known>, Path(id): Path<String>) -> StatusCode {
    state.note("remove");
    if state.containers.lock().remove(&id).is_some() {
        StatusCode::OK
    } else {
        StatusCode::NOT_FOUND
    }
}
