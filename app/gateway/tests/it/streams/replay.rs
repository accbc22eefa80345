//! Streams of runs that clients join.

use serde_json::json;

use super::GONE;
use crate::support::{Gateway, saying, saying_with};

#[tokio::test]
async fn join_replays_by_dialect_and_cursor() {
    let gateway = Gateway::new();
    let thread = gateway.thread().await;
    let body = saying_with("say hi", json!({ "stream_resumable": true }));
    let first = gateway
        .post(&format!("/threads/{thread}/runs/stream"), body)
        .await;
    let run = first
        .header("content-location")
        .rsplit('/')
        .next()
        .expect("an id")
        .to_owned();
    let path = format!("/threads/{thread}/runs/{run}/stream");
    for low in ["-1", "0", "0-0"] {
        assert_eq!(
            gateway
                .raw("GET", &path, "", &[("last-event-id", low)])
                .await
                .frames(),
            first.frames(),
            "{low}"
        );
    }
    assert_eq!(
        gateway
            .raw("GET", &path, "", &[("last-event-id", "1-1")])
            .await
            .events(),
        first.events()[1..]
    );
    assert_eq!(gateway.get(&path).await.events(), ["end"]);
    assert_eq!(
        gateway
            .raw("GET", &path, "", &[("last-event-id", "nonsense")])
            .await
            .code(),
        422
    );
    let filtered = gateway
        .raw(
            "GET",
            &format!("{path}?stream_mode=%5B%22values%22%5D"),
            "",
            &[("last-event-id", "-1")],
        )
        .await;
    assert!(
        filtered
            .events()
            .iter()
            .all(|name| ["values", "end"].contains(name)),
        "{:?}",
        filtered.events()
    );

    let api = gateway.get(&format!("/api{path}")).await;
    assert_eq!(
        (api.events(), api.header("content-location")),
        (first.events(), "")
    );
    let join = format!("/api/threads/{thread}/runs/{run}/join");
    assert_eq!(
        gateway
            .raw("GET", &join, "", &[("accept", "text/event-stream")])
            .await
            .events(),
        first.events()
    );
    assert!(gateway.get(&join).await.json()["messages"].is_array());
    assert_eq!(
        gateway
            .get(&format!("/api/threads/{thread}/runs/{GONE}/stream"))
            .await
            .json(),
        json!({ "detail": format!("Run {GONE} not found") })
    );
}

#[tokio::test]
async fn non_resumable_run_is_not_replayed_on_the_platform() {
    let gateway = Gateway::new();
    let thread = gateway.thread().await;
    let first = gateway
        .post(&format!("/threads/{thread}/runs/stream"), saying("say hi"))
        .await;
    let path = format!("{}/stream", first.header("content-location"));
    assert_eq!(
        gateway
            .raw("GET", &path, "", &[("last-event-id", "-1")])
            .await
            .events(),
        ["end"]
    );
}
