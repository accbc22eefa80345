//! `/health`, and responses of unknown routes.

use reqwest::Method;
use serde_json::json;

use crate::rig::{HttpResponse, Rig};

#[tokio::test]
async fn health_response_matches_deerflow() {
    let rig = Rig::start().await;
    for (path, word) in [("/health", "healthy"), ("/ready", "ready")] {
        let actual_text = rig.get(path).await.ok();
        assert_eq!(
            (&actual_text["status"], &actual_text["service"]),
            (&json!(word), &json!("deer-flow-gateway"))
        );
        let states = ["database", "stream_bridge", "lease"]
            .map(|part| actual_text["checks"][part]["state"].clone());
        assert_eq!(
            states,
            ["ok", "ok", "ok"].map(|state| json!(state)),
            "{actual_text}"
        );
        assert!(
            actual_text["checks"]["database"]["latency_ms"].is_number(),
            "{actual_text}"
        );
    }
}

#[tokio::test]
async fn every_prefix_serves_the_same_threads() {
    let rig = Rig::start().await;
    let thread = rig.thread().await;
    for prefix in ["/api", "/api/langgraph", ""] {
        assert_eq!(
            rig.get(&format!("{prefix}/threads/{thread}")).await.ok()["thread_id"],
            *thread,
            "{prefix}"
        );
    }
}

#[tokio::test]
async fn unknown_route_and_wrong_method_return_json_errors() {
    let rig = Rig::start().await;
    for prefix in ["/api", "/api/langgraph", ""] {
        rig.get(&format!("{prefix}/nowhere")).await.refusal(404);
        HttpResponse::of(rig.request(Method::PUT, &format!("{prefix}/threads/search")))
            .await
            .refusal(405);
    }
}
