//! What the server says of itself, and of its only user while authentication is switched off.

use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, Utc};
use harness::runtime::actor_context::effective_user_id;
use harness::runtime::runs::RunStatus;
use harness::runtime::runs::store::RunStanding;
use serde_json::{Value, json};

use super::{Answer, App, Reply};
use crate::access::is_admin;
use crate::error::ApiError;
use crate::extract::Query;
use crate::health::{Verdict, findings_json, of_part, reason, verdict};

/// How deployments know this server.
const SERVICE: &str = "deer-flow-gateway";

/// `GET /ok`, `GET /`: alive, and with `check_db=1` the store too.
pub(crate) async fn ok(State(state): App, query: Query) -> Answer {
    if query.flag("check_db")?.unwrap_or_default() {
        let findings = of_part(&state.health.look(&state.runs).await, "database");
        reason(&findings).map_or(Ok(()), |reason| Err(ApiError::Unavailable(reason)))?;
    }
    Ok(Json(json!({ "ok": true })))
}

/// `GET /health`: what DeerFlow's deployments probe. The process is there, so this is 200 whatever its parts do.
pub(crate) async fn health(State(state): App) -> Json<Value> {
    let findings = state.health.look(&state.runs).await;
    let status = match verdict(&findings) {
        Verdict::Ready => "healthy",
        Verdict::Degraded => "degraded",
        Verdict::NotReady => "unhealthy",
    };
    Json(json!({ "status": status, "service": SERVICE, "checks": findings_json(&findings) }))
}

/// `GET /ready`: whether runs are taken here now.
pub(crate) async fn ready(State(state): App) -> Response {
    if state.shutdown.is_cancelled() {
        let body = json!({ "status": "shutting down", "service": SERVICE, "checks": {} });
        return (StatusCode::SERVICE_UNAVAILABLE, Json(body)).into_response();
    }
    let findings = state.health.look(&state.runs).await;
    let (code, status) = match verdict(&findings) {
        Verdict::Ready => (StatusCode::OK, "ready"),
        Verdict::Degraded => (StatusCode::OK, "degraded"),
        Verdict::NotReady => (StatusCode::SERVICE_UNAVAILABLE, "not ready"),
    };
    let mut body =
        json!({ "status": status, "service": SERVICE, "checks": findings_json(&findings) });
    if let Some(reason) = reason(&findings) {
        body["reason"] = reason.into();
    }
    (code, Json(body)).into_response()
}

/// How `GET /metrics` answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MetricsFormat {
    Prometheus,
    Json,
}

/// The words for it.
pub(crate) const METRICS_FORMATS: &[(&str, MetricsFormat)] = &[
    ("prometheus", MetricsFormat::Prometheus),
    ("json", MetricsFormat::Json),
];

/// `GET /metrics`: the figures of this process for Prometheus, or how many runs wait and work, in all processes, as JSON.
pub(crate) async fn metrics(State(state): App, query: Query) -> Reply {
    if query.word("format", METRICS_FORMATS)? == Some(MetricsFormat::Json) {
        let now = state.clock.now();
        return Ok(
            Json(json!({ "queue": queue_json(&state.runs.load().await?, now) })).into_response(),
        );
    }
    state.counted.refresh(&state.runs, state.clock.now()).await;
    Ok((
        [(
            header::CONTENT_TYPE,
            "text/plain; version=0.0.4; charset=utf-8",
        )],
        state.metrics.render(),
    )
        .into_response())
}

/// How many runs wait and work, and how long those wait that may begin.
fn queue_json(runs: &[RunStanding], now: DateTime<Utc>) -> Value {
    let pending: Vec<&RunStanding> = runs
        .iter()
        .filter(|run| run.status.wire() == RunStatus::Pending.wire())
        .collect();
    // In the order of their making, so the longest wait comes first.
    let waits: Vec<f64> = pending
        .iter()
        .map(|run| (now - run.created_at).as_seconds_f64())
        .filter(|seconds| *seconds >= 0.0)
        .collect();
    json!({
        "n_pending": pending.len(),
        "n_running": runs.len() - pending.len(),
        "pending_runs_wait_time_max_secs": waits.first(),
        "pending_runs_wait_time_med_secs": waits.get(waits.len() / 2),
    })
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
        "system_role": if is_admin() { "admin" } else { "user" },
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

#[cfg(test)]
mod tests {
    use harness::ids::{RunId, ThreadId};

    use super::*;

    #[test]
    fn the_queue_tells_how_many_wait_and_how_long() {
        let at = |second| DateTime::from_timestamp(second, 0).unwrap();
        let run = |status, second| RunStanding {
            run_id: RunId::parse("r").unwrap(),
            thread_id: ThreadId::parse("t").unwrap(),
            told_to_stop: false,
            status,
            created_at: at(second),
        };
        let waiting = [
            (RunStatus::Pending, 1),
            (RunStatus::Running, 2),
            (RunStatus::Pending, 3),
            (RunStatus::Starting, 4),
            (RunStatus::Pending, 99),
        ];
        assert_eq!(
            queue_json(&waiting.map(|(status, second)| run(status, second)), at(10)),
            json!({ "n_pending": 4, "n_running": 1, "pending_runs_wait_time_max_secs": 9.0, "pending_runs_wait_time_med_secs": 7.0 })
        );
        assert_eq!(
            queue_json(&[], at(10)),
            json!({ "n_pending": 0, "n_running": 0, "pending_runs_wait_time_max_secs": null, "pending_runs_wait_time_med_secs": null })
        );
    }
}
