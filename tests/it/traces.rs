//! Export of traces to a collector; without a collector no traces are created.

use std::sync::Arc;

use axum::{Json, Router, extract::State, http::HeaderMap, routing::post};
use deerflow_tests::gateway::{AUTH_DISABLED, GatewayProcess};
use deerflow_tests::local_server::LocalServer;
use parking_lot::Mutex;
use serde_json::Value;

use crate::rig::{Rig, text, until};

type Batches = Arc<Mutex<Vec<(Value, HeaderMap)>>>;

/// Starts a collector on a loopback port that records what it receives.
async fn collector() -> (LocalServer, Batches) {
    let batches = Batches::default();
    let take = |State(batches): State<Batches>, headers: HeaderMap, Json(batch): Json<Value>| async move {
        batches.lock().push((batch, headers));
        Json(serde_json::json!({"partialSuccess": {}}))
    };
    let router = Router::new()
        .route("/v1/traces", post(take))
        .with_state(batches.clone());
    (
        LocalServer::start(router, 0).await.expect("a port"),
        batches,
    )
}

/// Returns all items of the arrays at `key` of these values.
fn all<'a>(values: impl IntoIterator<Item = &'a Value>, key: &str) -> Vec<&'a Value> {
    values
        .into_iter()
        .flat_map(|value| value[key].as_array().expect("an array"))
        .collect()
}

fn attribute<'a>(span: &'a Value, key: &str) -> Option<&'a str> {
    let attributes = span["attributes"].as_array()?;
    attributes
        .iter()
        .find(|attribute| attribute["key"] == key)?["value"]["stringValue"]
        .as_str()
}

#[tokio::test]
async fn run_spans_are_exported_to_configured_collector() {
    let (server, batches) = collector().await;
    let endpoint = format!("http://{}", server.address());
    let env = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint.as_str()),
        ("OTEL_EXPORTER_OTLP_HEADERS", "x-team=blue"),
        ("OTEL_BSP_SCHEDULE_DELAY", "100"),
    ];
    let rig = Rig::in_environment("", &env).await;
    let run = rig.run_prompt("then say traced").await;
    let actual = async || {
        batches
            .lock()
            .iter()
            .any(|(batch, _)| batch.to_string().contains(&run.run))
            .then_some(())
    };
    until("the run's span", actual).await;

    let batches = batches.lock();
    assert!(
        batches
            .iter()
            .all(|(_, headers)| headers["x-team"] == "blue")
    );
    let resources = all(batches.iter().map(|(batch, _)| batch), "resourceSpans");
    assert!(
        resources
            .iter()
            .all(|spans| attribute(&spans["resource"], "service.name") == Some("deerflow")),
        "{resources:?}"
    );
    let spans = all(all(resources, "scopeSpans"), "spans");
    let own = spans
        .iter()
        .find(|span| span["name"] == "run" && attribute(span, "run_id") == Some(&*run.run))
        .expect("the run's span");
    assert_eq!(attribute(own, "thread_id"), Some(&*run.thread));
    let under = |parent: &Value| -> Vec<&str> {
        let mut children: Vec<_> = spans
            .iter()
            .filter(|span| span["parentSpanId"] == parent["spanId"])
            .collect();
        children.sort_by_key(|span| text(&span["startTimeUnixNano"]).to_owned());
        children.iter().map(|span| text(&span["name"])).collect()
    };
    assert_eq!(under(own), ["start", "prepare", "stream", "finish"]);
    assert!(
        spans
            .iter()
            .all(|span| span["traceId"].as_str().is_some_and(|id| id.len() == 32))
    );
}

#[tokio::test]
async fn unreachable_collector_does_not_affect_runs() {
    let (server, _) = collector().await;
    let endpoint = format!("http://{}", server.address());
    drop(server);
    let mut rig = Rig::in_environment("", &[("OTEL_EXPORTER_OTLP_ENDPOINT", &endpoint)]).await;
    let run = rig.run_prompt("then say untold").await;
    assert_eq!(run.frames.last().map(|frame| frame.name()), Some("end"));
    assert!(
        rig.gateway
            .terminate()
            .await
            .expect("stopped in time")
            .success()
    );
}

#[tokio::test]
async fn invalid_collector_address_is_reported_at_start() {
    let env = [
        AUTH_DISABLED,
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "not an address"),
    ];
    let refused = GatewayProcess::start("config_version: 34\n", &env)
        .await
        .expect_err("must not start")
        .to_string();
    assert!(refused.contains("OTEL_EXPORTER_OTLP_ENDPOINT"), "{refused}");
}
