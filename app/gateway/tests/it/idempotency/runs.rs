//! Retried requests that create runs.

use axum::body::BodyDataStream;
use futures_util::StreamExt;
use futures_util::future::join_all;
use serde_json::{Value, json};

use super::{NAME, REPLAYED, run_of, runs_of, send_with_key};
use crate::support::{Gateway, HttpResponse, saying, saying_with};

#[tokio::test]
async fn retried_run_request_returns_the_same_run() {
    let gateway = Gateway::new();
    for prefix in ["", "/api"] {
        let thread = gateway.thread().await;
        for route in ["", "/stream", "/wait"] {
            let path = format!("{prefix}/threads/{thread}/runs{route}");
            let first = send_with_key(&gateway, &path, "k", &saying("say x")).await;
            assert_eq!(
                (first.code(), first.header(REPLAYED)),
                (200, ""),
                "{path}: {}",
                first.text()
            );
            gateway.wait_for_status(&thread, &run_of(&first)).await;
            // The order of fields does not matter.
            let body = r#"{"input": {"messages": [{"content": "say x", "type": "human"}]}, "assistant_id": "lead_agent"}"#;
            let again = gateway.raw("POST", &path, body, &[(NAME, "k")]).await;
            assert_eq!(
                (again.code(), again.header(REPLAYED)),
                (200, "true"),
                "{path}: {}",
                again.text()
            );
            assert_eq!(
                again.header("content-location"),
                first.header("content-location")
            );
            assert_eq!(again.header("location"), first.header("location"));
            match route {
                "" => assert_eq!(again.json()["run_id"], first.json()["run_id"]),
                "/stream" => assert_eq!(again.frames(), first.frames()),
                _ => assert_eq!(again.json()["messages"], first.json()["messages"]),
            }
            let other = send_with_key(&gateway, &path, "k", &saying("say y")).await;
            assert_eq!(other.code(), 422, "{path}: {}", other.text());
            assert!(
                other.json()["detail"]
                    .as_str()
                    .is_some_and(|text| text.contains("another request")),
                "{}",
                other.text()
            );
        }
        assert_eq!(runs_of(&gateway, &thread).await, 3, "{prefix}");
    }
}

#[tokio::test]
async fn stateless_runs_and_batches_are_created_once() {
    let gateway = Gateway::new();
    let keep = saying_with("say x", json!({ "on_completion": "keep" }));
    for path in [
        "/runs",
        "/runs/stream",
        "/runs/wait",
        "/api/runs",
        "/api/runs/stream",
        "/api/runs/wait",
    ] {
        let first = send_with_key(&gateway, path, "k", &keep_for(path, &keep)).await;
        let again = send_with_key(&gateway, path, "k", &keep_for(path, &keep)).await;
        assert_eq!(
            (first.code(), again.code(), again.header(REPLAYED)),
            (200, 200, "true"),
            "{path}: {}",
            again.text()
        );
        assert_eq!(
            first.header("content-location"),
            again.header("content-location"),
            "{path}"
        );
    }
    let ids = |response: &HttpResponse| -> Vec<Value> {
        response
            .json()
            .as_array()
            .expect("runs")
            .iter()
            .map(|run| run["run_id"].clone())
            .collect()
    };
    let short = json!([keep, keep]);
    let first = send_with_key(&gateway, "/runs/batch", "b", &short).await;
    let again = send_with_key(&gateway, "/runs/batch", "b", &short).await;
    assert_eq!((ids(&first).len(), ids(&first)), (2, ids(&again)));
    assert_eq!(
        (first.header(REPLAYED), again.header(REPLAYED)),
        ("", "true")
    );
    assert_eq!(
        send_with_key(&gateway, "/runs/batch", "b", &json!([keep, keep, keep]))
            .await
            .code(),
        422
    );
}

#[tokio::test]
async fn retried_wait_returns_first_response_after_thread_deletion() {
    let gateway = Gateway::new();
    for text in ["say x", "fail x"] {
        let first = send_with_key(
            &gateway,
            "/runs/wait",
            text.split(' ').next().unwrap(),
            &saying(text),
        )
        .await;
        let again = send_with_key(
            &gateway,
            "/runs/wait",
            text.split(' ').next().unwrap(),
            &saying(text),
        )
        .await;
        assert_eq!(
            (again.code(), again.header(REPLAYED)),
            (200, "true"),
            "{text}: {}",
            again.text()
        );
        assert_eq!(first.json(), again.json());
        let thread = first
            .header("content-location")
            .split('/')
            .nth(2)
            .expect("an id")
            .to_owned();
        assert_eq!(
            gateway.get(&format!("/threads/{thread}")).await.code(),
            404,
            "{text}"
        );
    }
    let response = send_with_key(&gateway, "/runs/wait", "say", &saying("say x"))
        .await
        .json();
    assert_eq!(response["messages"][1]["content"], "x", "{response}");
}

/// DeerFlow's routes do not have the option.
fn keep_for(path: &str, keep: &Value) -> Value {
    if path.starts_with("/api") {
        saying("say x")
    } else {
        keep.clone()
    }
}

#[tokio::test]
async fn concurrent_retries_create_one_run() {
    let gateway = Gateway::new();
    let thread = gateway.thread().await;
    let path = format!("/threads/{thread}/runs");
    let body = saying("say x");
    let answers = join_all((0..12).map(|_| send_with_key(&gateway, &path, "k", &body))).await;
    let first = answers[0].json()["run_id"].clone();
    assert!(
        answers
            .iter()
            .all(|response| response.code() == 200 && response.json()["run_id"] == first)
    );
    assert_eq!(
        answers
            .iter()
            .filter(|response| response.header(REPLAYED) == "true")
            .count(),
        11
    );
    assert_eq!(runs_of(&gateway, &thread).await, 1);
}

#[tokio::test]
async fn retried_stream_replays_from_its_start() {
    let gateway = Gateway::new();
    for prefix in ["", "/api"] {
        let thread = gateway.thread().await;
        let path = format!("{prefix}/threads/{thread}/runs/stream");
        let first = gateway
            .open("POST", &path, saying("slow").to_string(), &[(NAME, "k")])
            .await;
        let location = first.headers()["content-location"]
            .to_str()
            .expect("text")
            .to_owned();
        let run = location.rsplit('/').next().expect("an id").to_owned();
        let mut events: BodyDataStream = first.into_body().into_data_stream();
        let beginning = events.next().await.expect("events").expect("bytes");
        // The client disconnects; its run continues, unlike the run of a request without a key.
        drop(events);
        let again = gateway
            .open("POST", &path, saying("slow").to_string(), &[(NAME, "k")])
            .await;
        assert_eq!(again.headers()[REPLAYED], "true");
        assert_eq!(
            again.headers()["content-location"].to_str().expect("text"),
            location
        );
        let replayed = again
            .into_body()
            .into_data_stream()
            .next()
            .await
            .expect("events")
            .expect("bytes");
        assert!(replayed.starts_with(&beginning), "{replayed:?}");
        let status = gateway
            .get(&format!("/threads/{thread}/runs/{run}"))
            .await
            .json()["status"]
            .clone();
        assert_eq!(status, "running", "{prefix}");
        assert_eq!(
            gateway
                .post(
                    &format!("/threads/{thread}/runs/{run}/cancel?wait=1"),
                    json!({})
                )
                .await
                .code(),
            200
        );
    }
}
