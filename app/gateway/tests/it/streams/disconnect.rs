//! Clients and servers that disconnect.

use futures_util::{FutureExt, StreamExt};
use serde_json::{Value, json};

use super::read_until;
use crate::support::{Gateway, saying, saying_with};

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
