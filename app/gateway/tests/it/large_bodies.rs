//! Memory of large request bodies over HTTP.

use std::convert::Infallible;

use axum::body::{Body, Bytes};
use futures_util::{FutureExt, StreamExt, stream};
use serde_json::{Value, json};

use crate::support::Gateway;

const MIB: usize = 1 << 20;

/// Body of a new thread with a field that is not stored.
fn body(bytes: usize) -> String {
    json!({ "ignored": "x".repeat(bytes) }).to_string()
}

/// Body that begins with `bytes` and never ends.
fn endless(bytes: usize) -> Body {
    let begin = Bytes::from(vec![b' '; bytes]);
    let begin = stream::iter([Ok::<_, Infallible>(begin)]);
    Body::from_stream(begin.chain(stream::pending()))
}

#[tokio::test(start_paused = true)]
async fn body_without_memory_is_refused_with_retry_after() {
    let gateway = Gateway::new();
    let mut slow = Box::pin(gateway.open("POST", "/threads", endless(MIB + 1), &[]));
    assert!((&mut slow).now_or_never().is_none());
    // The slow body may become as large as the limit of 20 MiB, and the user has 32 MiB.
    let refused = gateway
        .open("POST", "/api/threads", body(13 * MIB), &[])
        .await;
    assert_eq!(refused.status(), 503);
    let header = |name| refused.headers()[name].to_str().expect("a text").to_owned();
    assert_eq!(
        [header("retry-after"), header("connection")],
        ["5", "close"]
    );
    let text = axum::body::to_bytes(refused.into_body(), MIB).await;
    let detail: Value = serde_json::from_slice(&text.expect("a body")).expect("JSON");
    let detail = detail["detail"].as_str().expect("a text");
    assert!(
        detail.contains("memory for large request bodies"),
        "{detail}"
    );

    let small = gateway.raw("POST", "/threads", body(MIB - 100), &[]).await;
    assert_eq!(small.code(), 200, "{}", small.text());
    drop(slow);
    let large = gateway.raw("POST", "/threads", body(13 * MIB), &[]).await;
    assert_eq!(large.code(), 200, "{}", large.text());
}

#[tokio::test(start_paused = true)]
async fn body_that_stops_is_a_timeout() {
    let gateway = Gateway::new();
    // Reads of states and lists receive the request before they take their turn.
    for path in ["/threads", "/threads/search"] {
        let stopped = gateway.raw("POST", path, endless(2 * MIB), &[]).await;
        assert_eq!(stopped.code(), 408, "{}", stopped.text());
    }
}

#[tokio::test]
async fn concurrent_large_bodies_of_one_user_are_all_handled() {
    let gateway = Gateway::new();
    let body = body(10 * MIB);
    let answers = (0..8).map(|_| gateway.raw("POST", "/threads", body.clone(), &[]));
    for answer in futures_util::future::join_all(answers).await {
        assert_eq!(answer.code(), 200, "{}", answer.text());
    }
}
