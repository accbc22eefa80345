//! Routes of DeerFlow that name a run without its thread, and the stream by `POST`.

use serde_json::json;

use crate::support::{Gateway, saying};

#[tokio::test]
async fn messages_and_feedback_are_read_without_the_thread() {
    let gateway = Gateway::new();
    let thread = format!("/api/threads/{}", gateway.thread().await);
    let made = gateway
        .post(&format!("{thread}/runs"), saying("say a"))
        .await
        .json();
    let run = made["run_id"].as_str().expect("an id").to_owned();
    let id = thread.rsplit('/').next().expect("an id");
    gateway.wait_for_status(id, &run).await;
    let rating = json!({ "rating": 1 });
    gateway
        .send(
            "PUT",
            &format!("{thread}/runs/{run}/feedback"),
            Some(rating),
        )
        .await;
    for what in ["messages", "feedback"] {
        let of_thread = gateway.get(&format!("{thread}/runs/{run}/{what}")).await;
        let alone = gateway.get(&format!("/api/runs/{run}/{what}")).await;
        assert_eq!(
            (alone.code(), alone.json()),
            (200, of_thread.json()),
            "{what}"
        );
        let unknown = gateway.get(&format!("/api/runs/{id}/{what}")).await;
        assert_eq!(
            (unknown.code(), &unknown.json()["detail"]),
            (404, &json!(format!("Run {id} not found")))
        );
    }
    let rows = gateway
        .get(&format!("/api/runs/{run}/messages?limit=1"))
        .await
        .json();
    assert_eq!(rows["data"].as_array().map(Vec::len), Some(1));
    assert_eq!(rows["has_more"], true);
}

#[tokio::test]
async fn stream_by_post_equals_the_one_by_get() {
    let gateway = Gateway::new();
    let thread = gateway.thread().await;
    let run = gateway
        .post(&format!("/api/threads/{thread}/runs"), saying("say a"))
        .await
        .json();
    let run = run["run_id"].as_str().expect("an id").to_owned();
    gateway.wait_for_status(&thread, &run).await;
    let path = format!("/api/threads/{thread}/runs/{run}/stream");
    let by_post = gateway.raw("POST", &path, "", &[]).await;
    assert_eq!(
        (by_post.code(), by_post.text()),
        (200, gateway.get(&path).await.text())
    );
    assert!(by_post.text().contains("event: end"), "{}", by_post.text());
    let over = gateway
        .raw("POST", &format!("{path}?action=interrupt"), "", &[])
        .await;
    assert_eq!(over.code(), 409, "the run has ended");
    let wrong = gateway
        .raw("POST", &format!("{path}?action=stop"), "", &[])
        .await;
    assert_eq!(wrong.code(), 422);
}

#[tokio::test]
async fn stream_by_post_cancels_first() {
    let gateway = Gateway::new();
    for (query, code) in [("action=interrupt", 200), ("action=interrupt&wait=1", 204)] {
        let thread = gateway.thread().await;
        let run = gateway
            .post(&format!("/api/threads/{thread}/runs"), saying("slow"))
            .await
            .json();
        let run = run["run_id"].as_str().expect("an id").to_owned();
        let path = format!("/api/threads/{thread}/runs/{run}/stream?{query}");
        let response = gateway.raw("POST", &path, "", &[]).await;
        assert_eq!(response.code(), code, "{}", response.text());
        assert_eq!(response.text().contains("event: end"), code == 200);
        let ended = gateway.wait_for_status(&thread, &run).await;
        assert_eq!(ended["status"], "interrupted");
    }
}
