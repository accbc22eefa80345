//! Event streams: what readers get, and when.

use std::time::Duration;

use futures_util::StreamExt;
use serde_json::{Value, json};

use super::{fresh, open, places, read, root, start};
use crate::support::{Gateway, saying};

#[tokio::test]
async fn readers_get_the_same_events_without_holes() {
    let gateway = Gateway::new();
    let thread = fresh();
    let live = open(&gateway, &thread, json!({})).await;
    start(&gateway, &thread, "say one").await;
    start(&gateway, &thread, "say two").await;
    let live = read(live, 2).await;
    let replayed = read(open(&gateway, &thread, json!({})).await, 2).await;
    assert_eq!(places(&live), places(&replayed));
    assert_eq!(
        root(&live),
        ["running", "completed", "running", "completed"]
    );
    let seqs: Vec<u64> = places(&live).into_iter().map(|(seq, _)| seq).collect();
    assert_eq!(seqs, (1..=live.len() as u64).collect::<Vec<_>>());
    let mut ids: Vec<String> = places(&live).into_iter().map(|(_, id)| id).collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), live.len());
    for after in 0..live.len() as u64 - 1 {
        let rest = read(open(&gateway, &thread, json!({ "since": after })).await, 1).await;
        assert_eq!(places(&rest)[0], places(&live)[after as usize]);
    }
}

#[tokio::test]
async fn run_is_stored_before_its_end_is_sent() {
    let gateway = Gateway::new();
    for (text, status) in [("say hi", "success"), ("fail boom", "error")] {
        let thread = fresh();
        let stream = open(&gateway, &thread, json!({})).await;
        let run = start(&gateway, &thread, text).await;
        let events = read(stream, 1).await;
        let found = gateway
            .get(&format!("/threads/{thread}/runs/{run}"))
            .await
            .json();
        assert_eq!(found["status"], status, "{events:?}");
        let thread = gateway.get(&format!("/threads/{thread}")).await.json();
        assert_ne!(thread["status"], "busy");
    }
}

#[tokio::test]
async fn run_of_classic_api_is_in_the_log() {
    let gateway = Gateway::new();
    let thread = gateway.thread().await;
    let path = format!("/threads/{thread}/runs/wait");
    gateway.post(&path, saying("say hi")).await;
    let events = read(open(&gateway, &thread, json!({})).await, 1).await;
    assert_eq!(root(&events), ["running", "completed"]);
    let mut values = events.iter().filter(|event| event["method"] == "values");
    let last = values.next_back().expect("a state");
    assert_eq!(last["params"]["data"]["messages"][1]["content"], "hi");
}

#[tokio::test]
async fn failed_run_reports_its_error() {
    let gateway = Gateway::new();
    let thread = fresh();
    let stream = open(&gateway, &thread, json!({})).await;
    start(&gateway, &thread, "fail boom").await;
    let events = read(stream, 1).await;
    let end = &events[events.len() - 1]["params"]["data"];
    assert_eq!(end["event"], "failed");
    assert!(end["error"].as_str().expect("a text").contains("boom"));
}

#[tokio::test]
async fn rolled_back_run_has_no_end_and_vanishes() {
    let gateway = Gateway::new();
    let thread = fresh();
    let slow = start(&gateway, &thread, "slow").await;
    let path = format!("/threads/{thread}/runs/{slow}/cancel?wait=1&action=rollback");
    let cancelled = gateway.raw("POST", &path, "", &[]).await;
    assert!(cancelled.code() < 300, "{}", cancelled.text());
    start(&gateway, &thread, "say hi").await;
    let events = read(open(&gateway, &thread, json!({})).await, 1).await;
    assert_eq!(root(&events), ["running", "completed"]);
}

#[tokio::test]
async fn invalid_selection_is_refused_before_anything_is_sent() {
    let gateway = Gateway::new();
    let path = format!("/threads/{}/stream/events", fresh());
    for body in [
        json!({}),
        json!([]),
        json!("x"),
        json!({ "channels": [] }),
        json!({ "channels": ["nope"] }),
        json!({ "channels": ["values", 5] }),
        json!({ "channels": ["values"], "namespaces": 5 }),
        json!({ "channels": ["values"], "depth": true }),
    ] {
        let refused = gateway.post(&path, body.clone()).await;
        assert_eq!(refused.code(), 400, "{body}");
        assert!(refused.json()["detail"].is_string());
    }
    let refused = gateway.raw("POST", &path, "zzz", &[]).await;
    assert_eq!(refused.code(), 400);
}

#[tokio::test]
async fn other_methods_are_refused() {
    let gateway = Gateway::new();
    for path in ["commands", "stream/events"] {
        let refused = gateway.get(&format!("/threads/{}/{path}", fresh())).await;
        assert_eq!(refused.code(), 405);
        assert!(refused.header("allow").contains("POST"), "{path}");
    }
}

#[tokio::test(start_paused = true)]
async fn silent_stream_sends_heartbeats() {
    let gateway = Gateway::new();
    let stream = open(&gateway, &fresh(), json!({})).await;
    let mut chunks = stream.into_body().into_data_stream();
    for _ in 0..3 {
        let since = tokio::time::Instant::now();
        let chunk = chunks.next().await.expect("no end").expect("bytes");
        assert_eq!(&chunk[..], b": heartbeat\r\n\r\n");
        assert!(since.elapsed() <= Duration::from_secs(6));
    }
}

#[tokio::test]
async fn deleted_threads_events_are_not_sent_for_a_new_one() {
    let gateway = Gateway::new();
    let thread = gateway.thread().await;
    let stream = open(&gateway, &thread, json!({})).await;
    start(&gateway, &thread, "say old").await;
    let old = read(stream, 1).await;
    assert!(json!(old).to_string().contains("say old"));
    let deleted = gateway
        .send("DELETE", &format!("/threads/{thread}"), None)
        .await;
    assert!(deleted.code() < 300, "{}", deleted.text());
    start(&gateway, &thread, "say new").await;
    let new = read(open(&gateway, &thread, json!({})).await, 1).await;
    let text = json!(new).to_string();
    assert!(
        !text.contains("say old") && text.contains("say new"),
        "{text}"
    );
}

#[tokio::test]
async fn message_ids_equal_those_of_the_state() {
    let gateway = Gateway::new();
    let thread = gateway.thread().await;
    let stream = open(&gateway, &thread, json!({})).await;
    start(&gateway, &thread, "say hi").await;
    let events = read(stream, 1).await;
    let state = gateway
        .get(&format!("/threads/{thread}/state"))
        .await
        .json();
    let ids = |state: &Value| -> Vec<Value> {
        let messages = state["messages"].as_array().expect("messages");
        messages
            .iter()
            .map(|message| message["id"].clone())
            .collect()
    };
    let mut values = events.iter().filter(|event| event["method"] == "values");
    let last = values.next_back().expect("a state");
    assert_eq!(ids(&last["params"]["data"]), ids(&state["values"]));
}
