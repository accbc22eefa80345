//! Event streams: headers, bytes, replay, disconnecting clients.

use axum::body::BodyDataStream;
use futures_util::{FutureExt, StreamExt};
use serde_json::{Value, json};

use crate::support::{Gateway, saying, saying_with};

const GONE: &str = "9c909fe5-1423-4566-9403-37f8a945b29b";

/// Reads a stream until its text contains `mark`.
async fn read_until(stream: &mut BodyDataStream, mark: &str) -> String {
    let mut text = String::new();
    while !text.contains(mark) {
        let chunk = stream
            .next()
            .await
            .expect("more of the stream")
            .expect("no error");
        text.push_str(std::str::from_utf8(&chunk).expect("UTF-8"));
    }
    text
}

#[tokio::test]
async fn deerflow_s_stream_has_its_headers_line_ends_and_ids() {
    let gateway = Gateway::new();
    let thread = gateway.thread().await;
    let body = saying_with("say hi", json!({ "stream_mode": ["values", "updates"] }));
    let stream = gateway
        .post(
            &format!("/api/langgraph/threads/{thread}/runs/stream"),
            body,
        )
        .await;
    let place = stream.header("content-location").to_owned();
    assert!(
        place.starts_with(&format!("/api/threads/{thread}/runs/")),
        "{place}"
    );
    for (name, value) in [
        ("content-type", "text/event-stream; charset=utf-8"),
        ("cache-control", "no-cache, no-transform"),
        ("connection", "keep-alive"),
        ("x-accel-buffering", "no"),
        (
            "location",
            &*format!("{}/stream", place.strip_prefix("/api").expect("a prefix")),
        ),
    ] {
        assert_eq!(stream.header(name), value, "{name}");
    }
    let text = stream.text();
    let run = place.rsplit('/').next().expect("an id");
    assert!(
        text.starts_with(&format!("event: metadata\ndata: {{\"run_id\":\"{run}\"")),
        "{text}"
    );
    assert!(
        text.ends_with("event: end\ndata: null\n\n") && !text.contains('\r'),
        "{text}"
    );
    assert_eq!(text.matches("\nid: ").count(), stream.events().len() - 1);
    assert_eq!(
        gateway
            .get(&format!("/api/threads/{thread}/runs/{run}"))
            .await
            .json()["status"],
        "success"
    );
}

#[tokio::test]
async fn the_platform_s_stream_has_ids_only_when_resumable() {
    let gateway = Gateway::new();
    let thread = gateway.thread().await;
    let plain = gateway
        .post(&format!("/threads/{thread}/runs/stream"), saying("say hi"))
        .await;
    assert_eq!(plain.header("cache-control"), "no-store, no-transform");
    assert!(!plain.text().contains("id: ") && plain.text().contains("\r\n\r\n"));
    assert_eq!(
        plain.text().matches('\n').count(),
        plain.text().matches("\r\n").count()
    );
    let resumable = gateway
        .post(
            &format!("/threads/{thread}/runs/stream"),
            saying_with("say hi", json!({ "stream_resumable": true })),
        )
        .await;
    assert!(resumable.text().contains("\r\nid: 1-1\r\n"));
    let failed = gateway
        .post(
            &format!("/threads/{thread}/runs/stream"),
            saying("fail boom"),
        )
        .await;
    assert_eq!(failed.code(), 200);
    assert_eq!(
        failed.events()[failed.events().len() - 2..],
        ["error", "end"]
    );
    assert!(failed.text().contains("boom"));
}

#[tokio::test]
async fn streamed_responses_forbid_proxy_transformation() {
    let gateway = Gateway::new();
    let accept_events = [("accept", "text/event-stream")];
    for (prefix, expected) in [
        ("/api", "no-cache, no-transform"),
        ("/api/langgraph", "no-cache, no-transform"),
        ("", "no-store, no-transform"),
    ] {
        let thread = gateway.thread().await;
        let threads = format!("{prefix}/threads/{thread}");
        let made = gateway
            .post(&format!("{threads}/runs/stream"), saying("say hi"))
            .await;
        let run = format!(
            "{threads}/runs/{}",
            made.header("content-location")
                .rsplit('/')
                .next()
                .expect("an id")
        );
        let mut answers = vec![
            ("stream", made),
            (
                "stateless stream",
                gateway
                    .post(&format!("{prefix}/runs/stream"), saying("say hi"))
                    .await,
            ),
            (
                "wait",
                gateway
                    .post(&format!("{threads}/runs/wait"), saying("say hi"))
                    .await,
            ),
            (
                "stateless wait",
                gateway
                    .post(&format!("{prefix}/runs/wait"), saying("say hi"))
                    .await,
            ),
            ("follow", gateway.get(&format!("{run}/stream")).await),
            ("join", gateway.get(&format!("{run}/join")).await),
            (
                "join for events",
                gateway
                    .raw("GET", &format!("{run}/join"), "", &accept_events)
                    .await,
            ),
        ];
        if prefix.is_empty() {
            let cursorless = gateway
                .open("GET", &format!("{threads}/stream"), "", &[])
                .await;
            assert_eq!(
                cursorless.headers()["cache-control"],
                expected,
                "thread stream"
            );
            let gone = format!("{threads}/runs/{GONE}/stream");
            answers.push(("follow nothing", gateway.get(&gone).await));
        }
        for (what, answer) in &answers {
            assert_eq!(
                (answer.code(), answer.header("cache-control")),
                (200, expected),
                "{prefix} {what}"
            );
            if answer
                .header("content-type")
                .starts_with("text/event-stream")
            {
                assert_eq!(
                    (
                        answer.header("x-accel-buffering"),
                        answer.header("connection")
                    ),
                    ("no", "keep-alive"),
                    "{prefix} {what}"
                );
            }
        }
    }
}

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

#[tokio::test]
async fn disconnect_cancels_only_if_requested() {
    let gateway = Gateway::new();
    for (body, path, ends) in [
        (json!({}), "/api", true),
        (json!({ "on_disconnect": "continue" }), "/api", false),
        (json!({}), "", false),
        (json!({ "on_disconnect": "cancel" }), "", true),
    ] {
        let thread = gateway.thread().await;
        let body = saying_with("slow", body).to_string();
        let response = gateway
            .open(
                "POST",
                &format!("{path}/threads/{thread}/runs/stream"),
                body,
                &[],
            )
            .await;
        let run = response.headers()["content-location"]
            .to_str()
            .expect("text")
            .rsplit('/')
            .next()
            .expect("an id")
            .to_owned();
        let mut stream = response.into_body().into_data_stream();
        read_until(&mut stream, "event: metadata").await;
        drop(stream);
        if ends {
            assert_eq!(
                gateway.wait_for_status(&thread, &run).await["status"],
                "interrupted"
            );
        } else {
            let join = gateway
                .open(
                    "GET",
                    &format!("/threads/{thread}/runs/{run}/stream"),
                    "",
                    &[],
                )
                .await;
            drop(join);
            let found = gateway
                .get(&format!("/api/threads/{thread}/runs/{run}"))
                .await
                .json();
            assert_eq!(
                (&found["status"], gateway.node().live_runs() > 0),
                (&json!("running"), true)
            );
            let path = format!("/threads/{thread}/runs/{run}/stream?cancel_on_disconnect=1");
            drop(gateway.open("HEAD", &path, "", &[]).await);
            let found = gateway
                .get(&format!("/api/threads/{thread}/runs/{run}"))
                .await
                .json();
            assert_eq!(
                (&found["status"], gateway.node().live_runs() > 0),
                (&json!("running"), true)
            );
            let mut join = gateway
                .open("GET", &path, "", &[])
                .await
                .into_body()
                .into_data_stream();
            assert!(join.next().now_or_never().is_none());
            drop(join);
            assert_eq!(
                gateway.wait_for_status(&thread, &run).await["status"],
                "interrupted"
            );
        }
    }
}

#[tokio::test]
async fn disconnect_from_a_waiting_response_cancels() {
    let gateway = Gateway::new();
    let thread = gateway.thread().await;
    let response = gateway
        .open(
            "POST",
            &format!("/api/threads/{thread}/runs/wait"),
            saying("slow").to_string(),
            &[],
        )
        .await;
    let run = response.headers()["content-location"]
        .to_str()
        .expect("text")
        .rsplit('/')
        .next()
        .expect("an id")
        .to_owned();
    drop(response);
    assert_eq!(
        gateway.wait_for_status(&thread, &run).await["status"],
        "interrupted"
    );
}

#[tokio::test]
async fn shutdown_breaks_streams_and_does_not_cancel_their_runs() {
    let gateway = Gateway::new();
    let thread = gateway.thread().await;
    let response = gateway
        .open(
            "POST",
            &format!("/api/threads/{thread}/runs/stream"),
            saying("slow").to_string(),
            &[],
        )
        .await;
    let run = response.headers()["content-location"]
        .to_str()
        .expect("text")
        .rsplit('/')
        .next()
        .expect("an id")
        .to_owned();
    let mut stream = response.into_body().into_data_stream();
    read_until(&mut stream, "event: metadata").await;
    gateway.shutdown.cancel();
    let mut broke = false;
    while let Some(chunk) = stream.next().await {
        broke = chunk.is_err();
    }
    drop(stream);
    assert!(broke, "the body ended normally, as after the run's end");
    let found: Value = gateway
        .get(&format!("/api/threads/{thread}/runs/{run}"))
        .await
        .json();
    assert_eq!(found["status"], "running");
}

#[tokio::test(start_paused = true)]
async fn heartbeats_follow_the_interval_of_the_dialect() {
    for (prefix, seconds) in [("", 5), ("/api", 15)] {
        let gateway = Gateway::new();
        let thread = gateway.thread().await;
        let response = gateway
            .open(
                "POST",
                &format!("{prefix}/threads/{thread}/runs/stream"),
                saying("slow").to_string(),
                &[],
            )
            .await;
        let mut stream = response.into_body().into_data_stream();
        read_until(&mut stream, "event: values").await;
        let before = tokio::time::Instant::now();
        read_until(&mut stream, ": heartbeat").await;
        let waited = before.elapsed().as_secs_f64();
        assert!(
            (waited - f64::from(seconds)).abs() < 0.5,
            "{prefix}: {waited}"
        );
    }
}

/// Returns the chunks of a stream, each with its time in milliseconds.
async fn timed_chunks(
    gateway: &Gateway,
    path: &str,
    headers: &[(&str, &str)],
) -> Vec<(u128, String)> {
    let body = saying_with(
        "say hi",
        json!({ "stream_mode": ["values", "messages-tuple", "updates", "custom"] }),
    );
    let mut stream = gateway
        .open("POST", path, body.to_string(), headers)
        .await
        .into_body()
        .into_data_stream();
    let began = tokio::time::Instant::now();
    let mut chunks = Vec::new();
    while let Some(chunk) = stream.next().await {
        chunks.push((
            began.elapsed().as_millis(),
            String::from_utf8(chunk.expect("no error").to_vec()).expect("UTF-8"),
        ));
    }
    chunks
}

fn names(chunk: &str) -> Vec<&str> {
    chunk
        .lines()
        .filter_map(|line| line.strip_prefix("event: "))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn new_chat_page_gets_a_pause_before_its_question() {
    let gateway = Gateway::new();
    let page = [("origin", "http://localhost:3000")];
    for prefix in ["/api", "/api/langgraph"] {
        let path = format!("{prefix}/threads/{}/runs/stream", gateway.thread().await);
        let chunks = timed_chunks(&gateway, &path, &page).await;
        assert_eq!(names(&chunks[0].1), ["metadata"], "{prefix}");
        assert!(chunks[0].0 < 100, "{prefix}: {}", chunks[0].0);
        assert!(
            chunks[1].0 - chunks[0].0 >= 200,
            "{prefix}: {}",
            chunks[1].0
        );
        let rest: String = chunks[1..].iter().map(|(_, text)| text.as_str()).collect();
        let order = names(&rest);
        assert_eq!(
            (order.first(), order.last()),
            (Some(&"values"), Some(&"end")),
            "{prefix}"
        );
        let datas = rest.lines().filter_map(|line| line.strip_prefix("data: "));
        let datas: Vec<Value> = datas
            .map(|data| serde_json::from_str(data).expect("JSON"))
            .collect();
        let states = order
            .iter()
            .zip(&datas)
            .filter(|(name, _)| **name == "values");
        let questions: Vec<&Value> = states
            .map(|(_, state)| &state["messages"][0]["id"])
            .collect();
        assert!(
            questions[0].is_string() && questions.len() > 1,
            "{prefix}: {questions:?}"
        );
        assert!(
            questions.iter().all(|id| *id == questions[0]),
            "{prefix}: one id for one question: {questions:?}"
        );

        let second = timed_chunks(&gateway, &path, &page).await;
        assert!(
            second.iter().all(|(at, _)| *at < 100),
            "{prefix}: the page shows the thread already"
        );
    }
    for (prefix, headers) in [("/api", &[][..]), ("", &page[..])] {
        let path = format!("{prefix}/threads/{}/runs/stream", gateway.thread().await);
        let chunks = timed_chunks(&gateway, &path, headers).await;
        assert!(
            chunks.iter().all(|(at, _)| *at < 100),
            "{prefix}: nothing waits for other clients"
        );
    }
}

#[tokio::test]
async fn disconnect_during_creation_cancels_the_run() {
    let gateway = Gateway::new();
    let thread = gateway.thread().await;
    let path = format!("/api/threads/{thread}/runs/stream");
    let mut request = Box::pin(gateway.open("POST", &path, saying("slow").to_string(), &[]));
    assert!(futures_util::poll!(request.as_mut()).is_pending());
    drop(request);
    let mut runs = json!([]);
    while runs == json!([]) {
        tokio::task::yield_now().await;
        runs = gateway
            .get(&format!("/api/threads/{thread}/runs"))
            .await
            .json();
    }
    let run = runs[0]["run_id"].as_str().expect("an id");
    assert_eq!(
        gateway.wait_for_status(&thread, run).await["status"],
        "interrupted"
    );
}
