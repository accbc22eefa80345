//! `/health` and what answers where nothing is.

use reqwest::Method;
use serde_json::json;

use crate::rig::{Answer, Rig};

#[tokio::test]
async fn a_healthy_gateway_says_so_in_deerflows_words() {
    let rig = Rig::start().await;
    assert_eq!(rig.get("/health").await.ok(), json!({"status": "healthy", "service": "deer-flow-gateway"}));
}

#[tokio::test]
async fn every_prefix_leads_to_the_same_threads() {
    let rig = Rig::start().await;
    let thread = rig.thread().await;
    for prefix in ["/api", "/api/langgraph", ""] {
        assert_eq!(rig.get(&format!("{prefix}/threads/{thread}")).await.ok()["thread_id"], *thread, "{prefix}");
    }
}

#[tokio::test]
async fn an_unknown_route_is_a_json_404_and_a_wrong_method_a_json_405() {
    let rig = Rig::start().await;
    for prefix in ["/api", "/api/langgraph", ""] {
        rig.get(&format!("{prefix}/nowhere")).await.refusal(404);
        Answer::of(rig.request(Method::PUT, &format!("{prefix}/threads/search"))).await.refusal(405);
    }
}
