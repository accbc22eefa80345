//! Lists of runs.

use serde_json::json;

use super::GONE;
use crate::support::{Gateway, saying};

#[tokio::test]
async fn lists_filter_page_and_select() {
    let gateway = Gateway::new();
    let thread = gateway.thread().await;
    for text in ["say a", "fail b", "say c"] {
        gateway
            .post(&format!("/api/threads/{thread}/runs/wait"), saying(text))
            .await;
    }
    let all = gateway
        .get(&format!("/api/threads/{thread}/runs"))
        .await
        .json();
    assert_eq!(all.as_array().expect("a list").len(), 3);
    assert_eq!(all[0]["kwargs"]["input"]["messages"][0]["content"], "say c");
    let failed = gateway
        .get(&format!(
            "/threads/{thread}/runs?status=error&select=run_id&select=status"
        ))
        .await
        .json();
    assert_eq!(
        failed,
        json!([{ "run_id": all[1]["run_id"], "status": "error" }])
    );
    let json_list = gateway
        .get(&format!(
            "/threads/{thread}/runs?limit=1&offset=2&select=%5B%22run_id%22%5D"
        ))
        .await
        .json();
    assert_eq!(json_list, json!([{ "run_id": all[2]["run_id"] }]));
    assert_eq!(
        gateway
            .get(&format!("/threads/{thread}/runs?status=nope"))
            .await
            .code(),
        422
    );
    assert_eq!(
        gateway.get(&format!("/threads/{GONE}/runs")).await.code(),
        404
    );
}
