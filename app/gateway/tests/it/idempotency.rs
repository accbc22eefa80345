//! Retries with an `Idempotency-Key`.

use axum::body::BodyDataStream;
use futures_util::StreamExt;
use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::support::{Gateway, HttpResponse, saying, saying_with};

const NAME: &str = "idempotency-key";
const REPLAYED: &str = "idempotent-replayed";

async fn send_with_key(gateway: &Gateway, path: &str, name: &str, body: &Value) -> HttpResponse {
    gateway
        .raw("POST", path, body.to_string(), &[(NAME, name)])
        .await
}

async fn runs_of(gateway: &Gateway, thread: &str) -> usize {
    gateway
        .get(&format!("/threads/{thread}/runs?limit=100"))
        .await
        .json()
        .as_array()
        .expect("a list")
        .len()
}

fn run_of(response: &HttpResponse) -> String {
    response
        .header("content-location")
        .rsplit('/')
        .next()
        .expect("an id")
        .to_owned()
}

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

#[tokio::test]
async fn retried_thread_request_returns_the_same_thread() {
    let gateway = Gateway::new();
    for path in ["/threads", "/api/threads"] {
        let body = json!({ "metadata": { "a": 1 } });
        let first = send_with_key(&gateway, path, "k", &body).await;
        let again = send_with_key(&gateway, path, "k", &body).await;
        assert_eq!(
            (first.code(), again.code(), again.header(REPLAYED)),
            (200, 200, "true"),
            "{path}"
        );
        assert_eq!(first.json(), again.json());
        assert_eq!(
            send_with_key(&gateway, path, "k", &json!({ "metadata": { "a": 2 } }))
                .await
                .code(),
            422
        );
        let thread = first.json()["thread_id"]
            .as_str()
            .expect("an id")
            .to_owned();
        gateway
            .send("DELETE", &format!("/threads/{thread}"), None)
            .await;
        // The resource was deleted; a retry does not create it again.
        assert_eq!(send_with_key(&gateway, path, "k", &body).await.code(), 404);
    }
}

#[tokio::test]
async fn retried_cron_request_returns_the_same_cron() {
    let gateway = Gateway::new();
    let thread = gateway.thread().await;
    for path in [
        "/runs/crons".to_owned(),
        format!("/threads/{thread}/runs/crons"),
    ] {
        let body = saying_with("say x", json!({ "schedule": "0 3 * * *" }));
        let retries = join_all((0..4).map(|_| send_with_key(&gateway, &path, "k", &body))).await;
        let first = retries[0].json()["cron_id"]
            .as_str()
            .expect("an id")
            .to_owned();
        assert!(
            retries
                .iter()
                .all(|retry| retry.code() == 200 && retry.json()["cron_id"] == first.as_str()),
            "{}",
            retries[1].text()
        );
        assert_eq!(
            retries
                .iter()
                .filter(|retry| retry.header(REPLAYED) != "true")
                .count(),
            1
        );
        let other = saying_with("say x", json!({ "schedule": "0 4 * * *" }));
        assert_eq!(
            send_with_key(&gateway, &path, "k", &other).await.code(),
            422
        );
        // A retry returns its current state, and does not create it again after its deletion.
        gateway
            .send(
                "PATCH",
                &format!("/runs/crons/{first}"),
                Some(json!({ "enabled": false })),
            )
            .await;
        assert_eq!(
            send_with_key(&gateway, &path, "k", &body).await.json()["enabled"],
            false
        );
        assert_eq!(
            gateway
                .send("DELETE", &format!("/runs/crons/{first}"), None)
                .await
                .code(),
            204
        );
        assert_eq!(send_with_key(&gateway, &path, "k", &body).await.code(), 404);
    }
    assert_eq!(gateway.post("/runs/crons/count", json!({})).await.json(), 0);
}

#[tokio::test]
async fn rejected_request_does_not_use_up_its_key() {
    let gateway = Gateway::new();
    let thread = gateway.thread().await;
    let path = format!("/threads/{thread}/runs");
    let slow = send_with_key(&gateway, &path, "slow", &saying("slow"))
        .await
        .json()["run_id"]
        .as_str()
        .expect("an id")
        .to_owned();
    let rejects = saying_with("say x", json!({ "multitask_strategy": "reject" }));
    assert_eq!(
        send_with_key(&gateway, &path, "k", &rejects).await.code(),
        409
    );
    assert_eq!(
        gateway
            .post(&format!("{path}/{slow}/cancel?wait=1"), json!({}))
            .await
            .code(),
        200
    );
    let made = send_with_key(&gateway, &path, "k", &rejects).await;
    assert_eq!((made.code(), made.header(REPLAYED)), (200, ""));
    // A thread whose seed is rejected does not use up its key.
    let bad = json!({ "supersteps": [{ "updates": [{ "values": { "messages": [{ "type": "nonsense" }] }, "as_node": "__input__" }] }] });
    let refused = send_with_key(&gateway, "/threads", "seed", &bad)
        .await
        .code();
    assert!((400..500).contains(&refused), "{refused}");
    assert_eq!(
        send_with_key(&gateway, "/threads", "seed", &bad)
            .await
            .code(),
        refused
    );
    assert_eq!(
        send_with_key(&gateway, "/threads", "seed", &json!({}))
            .await
            .code(),
        200
    );
}

#[tokio::test]
async fn seeded_thread_is_created_once() {
    let gateway = Gateway::new();
    let message = json!({ "type": "human", "content": "hello" });
    let steps =
        json!([{ "updates": [{ "values": { "messages": [message] }, "as_node": "__input__" }] }]);
    let body = json!({ "metadata": { "graph_id": "lead_agent" }, "supersteps": steps });
    let retries =
        join_all((0..4).map(|_| send_with_key(&gateway, "/threads", "seed", &body))).await;
    let first = retries[0].json()["thread_id"].clone();
    for retry in &retries {
        assert_eq!((retry.code(), &retry.json()["thread_id"]), (200, &first));
        assert_eq!(
            retry.json()["values"]["messages"][0]["content"],
            "hello",
            "{}",
            retry.text()
        );
    }
    assert_eq!(
        retries
            .iter()
            .filter(|retry| retry.header(REPLAYED) != "true")
            .count(),
        1
    );
    assert_eq!(
        gateway
            .post("/threads/search", json!({}))
            .await
            .json()
            .as_array()
            .map(Vec::len),
        Some(1)
    );
}

#[tokio::test]
async fn keys_are_scoped_to_user_and_route_and_validated() {
    let gateway = Gateway::new();
    let thread = gateway.thread().await;
    let path = format!("/threads/{thread}/runs");
    let long = "x".repeat(256);
    for bad in ["", " ", "a b", "a\tb", "\u{e9}", long.as_str()] {
        for path in [path.as_str(), "/threads", "/runs/batch"] {
            let response = send_with_key(&gateway, path, bad, &saying("say x")).await;
            assert_eq!(response.code(), 422, "{bad:?}: {}", response.text());
            assert!(
                response.json()["detail"]
                    .as_str()
                    .is_some_and(|text| text.starts_with("Idempotency-Key")),
                "{}",
                response.text()
            );
        }
    }
    let twice = gateway
        .raw(
            "POST",
            &path,
            saying("say x").to_string(),
            &[(NAME, "a"), (NAME, "b")],
        )
        .await;
    assert_eq!((twice.code(), runs_of(&gateway, &thread).await), (422, 0));
    // The same key on another thread is a different request.
    let other = gateway.thread().await;
    assert_eq!(
        send_with_key(&gateway, &path, "k", &saying("say x"))
            .await
            .code(),
        200
    );
    assert_eq!(
        send_with_key(
            &gateway,
            &format!("/threads/{other}/runs"),
            "k",
            &saying("say x")
        )
        .await
        .code(),
        422
    );
    assert_eq!(
        send_with_key(
            &gateway,
            &format!("/threads/{other}/runs/wait"),
            "k",
            &saying("say x")
        )
        .await
        .code(),
        200
    );
}

#[tokio::test]
async fn retried_upload_returns_the_first_response() {
    let gateway = Gateway::new();
    let thread = gateway.thread().await;
    let path = format!("/api/threads/{thread}/uploads");
    let send = |name: &'static str, text: &str| {
        let form = format!(
            "--B\r\nContent-Disposition: form-data; name=\"files\"; filename=\"a.txt\"\r\n\r\n{text}\r\n--B--\r\n"
        );
        let headers = [
            ("content-type", "multipart/form-data; boundary=B"),
            (NAME, name),
        ];
        let (gateway, path) = (&gateway, path.clone());
        async move { gateway.raw("POST", &path, form, &headers).await }
    };
    let first = send("k", "one").await;
    assert_eq!(first.code(), 200, "{}", first.text());
    send("other", "two").await;
    let again = send("k", "one").await;
    assert_eq!(
        (again.json(), again.header(REPLAYED)),
        (first.json(), "true")
    );
    assert_eq!(send("k", "three").await.code(), 422);
    let stored = gateway
        .get(&format!(
            "/api/threads/{thread}/artifacts/mnt/user-data/uploads/a.txt"
        ))
        .await;
    assert_eq!(stored.text(), "two");
}
