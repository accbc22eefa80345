//! What the server says of itself, and of its only user while authentication is switched off.

use axum::Json;
use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use deerflow_domain::threads::ThreadSearch;
use harness::runtime::actor_context::{Owner, effective_user_id};
use serde_json::{Value, json};

use super::{Answer, App};
use crate::extract::Query;

/// `GET /ok`, `GET /`: alive, and with `check_db=1` the store too.
pub(crate) async fn ok(State(state): App, query: Query) -> Answer {
    if query.flag("check_db")?.unwrap_or_default() {
        state.threads.count(&ThreadSearch { limit: 1, ..ThreadSearch::default() }, &Owner::Auto).await?;
    }
    Ok(Json(json!({ "ok": true })))
}

/// `GET /health`: what DeerFlow's deployments probe.
pub(crate) async fn health() -> Json<Value> {
    Json(json!({ "status": "healthy", "service": "deer-flow-gateway" }))
}

/// `GET /metrics`: the figures of this process, for Prometheus.
pub(crate) async fn metrics(State(state): App) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], state.metrics.render())
}

/// `GET /info`: the version, and which parts of the API there are.
pub(crate) async fn info() -> Json<Value> {
    Json(json!({
        "version": env!("CARGO_PKG_VERSION"),
        "flags": { "assistants": true, "crons": true, "store": true, "langsmith": false },
        "host": { "kind": "self-hosted", "project_id": null, "host_revision_id": null, "revision_id": null, "tenant_id": null },
    }))
}

/// `GET /api/v1/auth/me`: who acts.
pub(crate) async fn me() -> Json<Value> {
    Json(json!({
        "id": effective_user_id(),
        "email": "default@test.local",
        "system_role": "admin",
        "needs_setup": false,
        "oauth_provider": null,
    }))
}

/// `GET /api/v1/auth/setup-status`: nothing to set up, nobody to register.
pub(crate) async fn setup_status() -> Json<Value> {
    Json(json!({ "needs_setup": false, "registration_enabled": false }))
}

/// `GET /api/v1/auth/providers`.
pub(crate) async fn auth_providers() -> Json<Value> {
    Json(json!({ "providers": [] }))
}
