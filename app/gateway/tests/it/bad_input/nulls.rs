//! Nulls that count as absent fields.

use serde_json::json;

use super::Fixture;
use crate::support::{saying, saying_with};

#[tokio::test]
async fn null_ids_of_threads_count_as_absent() {
    let Fixture { gateway, .. } = Fixture::new().await;
    for prefix in ["", "/api"] {
        for (path, field) in [("search", "/0/thread_id"), ("count", "")] {
            let path = format!("{prefix}/threads/{path}");
            let response = gateway.post(&path, json!({ "ids": null })).await;
            assert_eq!(response.code(), 200, "{path}: {}", response.text());
            let absent = gateway.post(&path, json!({})).await;
            assert_eq!(
                response.json().pointer(field),
                absent.json().pointer(field),
                "{path}"
            );
        }
    }
}

#[tokio::test]
async fn null_fields_of_a_cancel_count_as_absent() {
    let Fixture {
        gateway, thread, ..
    } = Fixture::new().await;
    let path = format!("/threads/{thread}/runs");
    let run = gateway.post(&path, saying("slow")).await.json();
    let body = json!({ "thread_id": thread, "run_ids": null, "status": null });
    let on_platform = gateway.post("/runs/cancel", body.clone()).await;
    assert_eq!(on_platform.code(), 422, "{}", on_platform.text());
    let response = gateway.post("/api/runs/cancel", body).await;
    assert_eq!(response.code(), 204, "{}", response.text());
    let run = run["run_id"].as_str().expect("an id");
    let ended = gateway.wait_for_status(&thread, run).await;
    assert_eq!(ended["status"], "interrupted");
}

#[tokio::test]
async fn cron_accepts_null_messages_like_a_run() {
    let Fixture {
        gateway,
        thread,
        cron,
        ..
    } = Fixture::new().await;
    for input in [json!({ "messages": null }), json!(null)] {
        let input = json!({ "input": input });
        let run = saying_with("hi", input.clone());
        let path = format!("/threads/{thread}/runs/wait");
        let response = gateway.post(&path, run).await;
        assert_eq!(response.code(), 200, "run with {input}");
        let mut new = saying_with("hi", input.clone());
        new["schedule"] = json!("0 8 * * *");
        let response = gateway.post("/runs/crons", new).await;
        assert_eq!(response.code(), 200, "{input}: {}", response.text());
        let path = format!("/runs/crons/{cron}");
        let response = gateway.send("PATCH", &path, Some(input.clone())).await;
        assert_eq!(response.code(), 200, "{input}: {}", response.text());
    }
}
