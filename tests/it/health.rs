//! `/health` and what answers where nothing is.

use reqwest::Method;
use serde_json::json;

use crate::rig::{Answer, Rig};

#[tokio::test]
async fn a_healthy_gateway_says_so_in_deerflows_words() {
    let rig = Rig::start().await;
    for (path, word) in [("/health", "healthy"), ("/ready", "ready")] {
        let said = rig.get(path).await.ok();
        assert_eq!(
            (&said["status"], &said["service"]),
            (&json!(word), &json!("deer-flow-gateway"))
        );
        let states = ["database", "stream_bridge", "lease"]
            .map(|part| said["checks"][part]["state"].clone());
        assert_eq!(
            states,
            ["ok", "ok", "ok"].map(|state| json!(state)),
            "{said}"
        );
        assert!(
            said["checks"]["database"]["latency_ms"].is_number(),
            "{said}"
        );
    }
}

#[tokio::test]
async fn every_prefix_leads_to_the_same_threads() {
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
async fn an_unknown_route_is_a_json_404_and_a_wrong_method_a_json_405() {
    let rig = Rig::start().await;
    for prefix in ["/api", "/api/langgraph", ""] {
        rig.get(&format!("{prefix}/nowhere")).await.refusal(404);
        Answer::of(rig.request(Method::PUT, &format!("{prefix}/threads/search")))
            .await
            .refusal(405);
    }
}
