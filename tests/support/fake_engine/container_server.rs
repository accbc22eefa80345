//! Server inside a container: runs commands in this machine's shell, with the container's folders
//! mapped to host paths.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State as Shared;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, post};
use axum::{Json, Router};
use bytes::Bytes;
use serde_json::{Value, json};
use tokio::process::Command;

use super::{Behavior, State};

/// Folders in the container and their host paths.
pub(super) type Mounts = Vec<(String, String)>;

#[derive(Debug, Clone)]
struct ContainerServer {
    engine: Arc<State>,
    mounts: Arc<Mounts>,
}

pub(super) fn router(engine: Arc<State>, mounts: Mounts) -> Router {
    Router::new()
        .route("/v1/sandbox", get(sandbox_info))
        .route("/v1/file/write", post(write))
        .route("/v1/bash/exec", post(bash))
        .route(
            "/v1/shell/sessions/create",
            post(|| async { Json(json!({"success": true})) }),
        )
        .route(
            "/v1/shell/sessions/{id}",
            delete(|| async { Json(json!({"success": true})) }),
        )
        .route("/v1/shell/exec", post(shell))
        .with_state(ContainerServer {
            engine,
            mounts: Arc::new(mounts),
        })
}

impl ContainerServer {
    /// Replaces the container's folders in a text by the host's.
    fn outside(&self, text: &str) -> String {
        let scratch = self.engine.scratch.path().display().to_string();
        self.mounts.iter().fold(
            text.replace("/tmp/", &format!("{scratch}/")),
            |text, (target, source)| text.replace(target, source),
        )
    }

    /// Like the real server, this does not end a command whose caller has disconnected.
    async fn run(&self, body: &Value) -> (Option<i32>, String, String) {
        let command = self.outside(body["command"].as_str().unwrap_or_default());
        let ran = Command::new("/bin/bash")
            .arg("-c")
            .arg(command)
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .output()
            .await;
        let ran = ran.expect("a shell");
        (
            ran.status.code(),
            String::from_utf8_lossy(&ran.stdout).into_owned(),
            String::from_utf8_lossy(&ran.stderr).into_owned(),
        )
    }
}

async fn sandbox_info(Shared(container_server): Shared<ContainerServer>) -> Response {
    if container_server.engine.behavior() == Behavior::NeverReady {
        return StatusCode::BAD_GATEWAY.into_response();
    }
    Json(json!({"success": true, "home_dir": "/home/gem"})).into_response()
}

async fn write(
    Shared(container_server): Shared<ContainerServer>,
    Json(body): Json<Value>,
) -> Response {
    let (Some(file), Some(content)) = (body["file"].as_str(), body["content"].as_str()) else {
        return StatusCode::UNPROCESSABLE_ENTITY.into_response();
    };
    match std::fs::write(
        container_server.outside(file),
        container_server.outside(content),
    ) {
        Ok(()) => Json(json!({"success": true})).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

async fn bash(
    Shared(container_server): Shared<ContainerServer>,
    Json(body): Json<Value>,
) -> Response {
    let is_launch = body["command"]
        .as_str()
        .is_some_and(|command| command.starts_with("bash /tmp/deerflow-"));
    match container_server.engine.behavior() {
        Behavior::Old => StatusCode::NOT_FOUND.into_response(),
        Behavior::Failing if is_launch => {
            (StatusCode::INTERNAL_SERVER_ERROR, "out of order").into_response()
        }
        Behavior::Garbage if is_launch => {
            Json(json!({"data": {"stdout": "hello"}})).into_response()
        }
        Behavior::Endless if is_launch => {
            let piece = Bytes::from(vec![b' '; 1 << 20]);
            Body::from_stream(futures_util::stream::repeat_with(move || {
                Ok::<_, std::io::Error>(piece.clone())
            }))
            .into_response()
        }
        Behavior::BreakingOff if is_launch => {
            let broken = futures_util::stream::iter([
                Ok(Bytes::from_static(b"{\"data\":")),
                Err(std::io::Error::other("gone")),
            ]);
            Body::from_stream(broken).into_response()
        }
        _ => {
            let (code, out, err) = container_server.run(&body).await;
            Json(json!({"success": true, "data": {"status": "completed", "stdout": out, "stderr": err, "exit_code": code}})).into_response()
        }
    }
}

async fn shell(
    Shared(container_server): Shared<ContainerServer>,
    Json(body): Json<Value>,
) -> Json<Value> {
    let (code, out, err) = container_server.run(&body).await;
    let shown = format!(
        "$ {}\n{out}{err}$ ",
        body["command"].as_str().unwrap_or_default()
    )
    .replace('\n', "\r\n");
    Json(
        json!({"success": true, "data": {"status": "completed", "output": shown, "exit_code": code}}),
    )
}
