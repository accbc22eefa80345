//! Facts about the server.

use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, Utc};
use harness::runtime::runs::RunStatus;
use harness::runtime::runs::store::UnfinishedRun;
use serde_json::{Value, json};

use super::{App, JsonResult, ResponseResult};
use crate::error::ApiError;
use crate::extract::Query;
use crate::observability::health::{Readiness, readiness, reason, results_json, results_of};
use crate::observability::request_counts::request_counts;

/// Name of this server for deployments.
const SERVICE: &str = "deer-flow-gateway";

/// `GET /ok`, `GET /`: liveness; with `check_db=1` also checks the store. There are no further
/// services: what a deployment consists of is in `/health`.
pub(crate) async fn ok(State(state): App, query: Query) -> JsonResult {
    if query.flag("check_db")?.unwrap_or_default() {
        let results = results_of(
            &state.observability.health.check(&state.node()).await,
            "database",
        );
        reason(&results).map_or(Ok(()), |reason| Err(ApiError::Unavailable(reason)))?;
    }
    Ok(Json(json!({ "ok": true, "services": {} })))
}

/// `GET /health`: probed by DeerFlow's deployments. The status is 200 as long as the process
/// responds.
pub(crate) async fn health(State(state): App) -> Json<Value> {
    let results = state.observability.health.check(&state.node()).await;
    let status = match readiness(&results) {
        Readiness::Ready => "healthy",
        Readiness::Degraded => "degraded",
        Readiness::NotReady => "unhealthy",
    };
    Json(json!({ "status": status, "service": SERVICE, "checks": results_json(&results) }))
}

/// `GET /ready`: reports whether this process accepts runs.
pub(crate) async fn ready(State(state): App) -> Response {
    if state.process.shutdown.is_cancelled() {
        let body = json!({ "status": "shutting down", "service": SERVICE, "checks": {} });
        return (StatusCode::SERVICE_UNAVAILABLE, Json(body)).into_response();
    }
    let results = state.observability.health.check(&state.node()).await;
    let (code, status) = match readiness(&results) {
        Readiness::Ready => (StatusCode::OK, "ready"),
        Readiness::Degraded => (StatusCode::OK, "degraded"),
        Readiness::NotReady => (StatusCode::SERVICE_UNAVAILABLE, "not ready"),
    };
    let mut body =
        json!({ "status": status, "service": SERVICE, "checks": results_json(&results) });
    if let Some(reason) = reason(&results) {
        body["reason"] = reason.into();
    }
    (code, Json(body)).into_response()
}

/// Response format of `GET /metrics`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MetricsFormat {
    Prometheus,
    Json,
}

/// Wire names of the formats.
pub(crate) const METRICS_FORMATS: &[(&str, MetricsFormat)] = &[
    ("prometheus", MetricsFormat::Prometheus),
    ("json", MetricsFormat::Json),
];

/// `GET /metrics`: metrics of this process for Prometheus, or as JSON the numbers of queued and
/// active runs in all processes, and of answered requests and executed runs in this one.
pub(crate) async fn metrics(State(state): App, query: Query) -> ResponseResult {
    if query.word("format", METRICS_FORMATS)? == Some(MetricsFormat::Json) {
        let now = state.process.clock.now();
        let unfinished = state.run_queries().unfinished_of_all_users().await?;
        let requests = request_counts(&state.observability.metrics.render());
        return Ok(Json(json!({
            "api": { "http_requests_total": requests },
            "queue": queue_json(&unfinished, now),
            // Runs are not limited by a number of workers.
            "workers": { "max": null, "active": state.node().live_runs(), "available": null },
        }))
        .into_response());
    }
    state
        .observability
        .run_gauges
        .refresh(
            &state.node(),
            &state.run_queries(),
            state.process.clock.now(),
        )
        .await;
    Ok((
        [(
            header::CONTENT_TYPE,
            "text/plain; version=0.0.4; charset=utf-8",
        )],
        state.observability.metrics.render(),
    )
        .into_response())
}

/// Returns the numbers of queued and active runs, and the waiting times of those that are due.
fn queue_json(runs: &[UnfinishedRun], now: DateTime<Utc>) -> Value {
    let pending: Vec<&UnfinishedRun> = runs
        .iter()
        .filter(|run| run.status.wire() == RunStatus::Pending.wire())
        .collect();
    // In order of creation, so the longest wait is first.
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

/// `GET /info`: the version and the supported parts of the API.
pub(crate) async fn info() -> Json<Value> {
    Json(json!({
        "version": env!("CARGO_PKG_VERSION"),
        "flags": {
            "assistants": true, "crons": true, "store": true, "langsmith": false,
            "langsmith_tracing_replicas": false, "langsmith_tracing_session_on_runs": false,
        },
        "metadata": {},
        "host": { "kind": "self-hosted", "project_id": null, "host_revision_id": null, "revision_id": null, "tenant_id": null },
    }))
}

#[cfg(test)]
mod tests {
    use harness::ids::{RunId, ThreadId};

    use super::*;

    #[test]
    fn queue_metrics_have_counts_and_waiting_times() {
        let at = |second| DateTime::from_timestamp(second, 0).unwrap();
        let run = |status, second| UnfinishedRun {
            run_id: RunId::parse("r").unwrap(),
            thread_id: ThreadId::parse("t").unwrap(),
            user_id: None,
            cancel_requested: false,
            was_released: false,
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
