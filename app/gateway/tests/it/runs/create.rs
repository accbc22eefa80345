//! Creation of runs, with and without a thread, and waiting for them.

use std::time::Duration;

use serde_json::{Value, json};

use super::GONE;
use crate::support::{Gateway, saying, saying_with};

#[tokio::test]
async fn background_run_returns_its_record_and_location() {
    let gateway = Gateway::new();
    let thread = gateway.thread().await;
    let made = gateway
        .post(
            &format!("/api/threads/{thread}/runs"),
            saying_with("say a", json!({ "metadata": { "k": 1 } })),
        )
        .await;
    let run = made.json();
    let id = run["run_id"].as_str().expect("an id").to_owned();
    assert_eq!(
        made.header("content-location"),
        format!("/api/threads/{thread}/runs/{id}")
    );
    let ended = gateway.wait_for_status(&thread, &id).await;
    let names: Vec<&str> = ended
        .as_object()
        .expect("an object")
        .keys()
        .map(String::as_str)
        .collect();
    assert_eq!(
        names,
        [
            "run_id",
            "thread_id",
            "assistant_id",
            "status",
            "metadata",
            "kwargs",
            "multitask_strategy",
            "created_at",
            "updated_at",
            "total_input_tokens",
            "total_output_tokens",
            "total_tokens",
            "llm_call_count",
            "lead_agent_tokens",
            "subagent_tokens",
            "middleware_tokens",
            "message_count",
            "stop_reason",
            "error"
        ]
    );
    assert_eq!(
        (&ended["status"], &ended["assistant_id"], &ended["metadata"]),
        (&json!("success"), &json!("lead_agent"), &json!({ "k": 1 }))
    );
    assert_eq!(ended["kwargs"]["config"], Value::Null);
    let root = gateway
        .get(&format!("/threads/{thread}/runs/{id}"))
        .await
        .json();
    assert_eq!(
        root["assistant_id"],
        gateway.post("/assistants/search", json!({})).await.json()[0]["assistant_id"]
    );
}

#[tokio::test]
async fn errors_before_a_run_are_plain_json() {
    let gateway = Gateway::new();
    let thread = gateway.thread().await;
    let status = async |path: String, body: Value| {
        let answer = gateway.post(&path, body).await;
        (answer.code(), answer.json()["detail"].clone())
    };
    assert_eq!(
        status(format!("/api/threads/{GONE}/runs/stream"), saying("x")).await,
        (404, json!(format!("Thread {GONE} not found")))
    );
    assert_eq!(
        status(format!("/threads/{GONE}/runs/stream"), saying("x")).await,
        (404, json!("Thread or assistant not found."))
    );
    let model = saying_with("x", json!({ "context": { "model_name": "nope" } }));
    assert_eq!(
        status(format!("/api/threads/{thread}/runs/stream"), model).await,
        (
            400,
            json!("Model 'nope' is not in the configured model allowlist")
        )
    );
    let custom = saying_with("x", json!({ "assistant_id": "My_Agent" }));
    assert_eq!(
        status(format!("/api/threads/{thread}/runs"), custom).await,
        (404, json!("Assistant my-agent not found"))
    );
    let checkpoint = saying_with("x", json!({ "checkpoint_id": GONE }));
    assert_eq!(
        status(format!("/api/threads/{thread}/runs"), checkpoint).await,
        (404, json!(format!("Checkpoint {GONE} not found")))
    );
    assert_eq!(
        gateway.get(&format!("/threads/{thread}/runs")).await.json(),
        json!([])
    );
}

#[tokio::test]
async fn second_run_on_a_busy_thread_is_rejected() {
    let gateway = Gateway::new();
    let thread = gateway.thread().await;
    gateway
        .post(&format!("/api/threads/{thread}/runs"), saying("slow"))
        .await;
    let second = gateway
        .post(&format!("/api/threads/{thread}/runs"), saying("x"))
        .await;
    assert_eq!(
        (second.code(), second.json()),
        (
            409,
            json!({ "detail": format!("Thread {thread} already has an active run") })
        )
    );
    let rejecting = saying_with("x", json!({ "multitask_strategy": "reject" }));
    let second = gateway
        .post(&format!("/threads/{thread}/runs/wait"), rejecting)
        .await;
    assert_eq!(second.code(), 409);
    assert!(second.text().contains("multitask strategy"));
}

#[tokio::test]
async fn wait_returns_the_last_values_or_the_error() {
    let gateway = Gateway::new();
    let thread = gateway.thread().await;
    for prefix in ["", "/api"] {
        let waited = gateway
            .post(
                &format!("{prefix}/threads/{thread}/runs/wait"),
                saying("say done"),
            )
            .await;
        assert_eq!(
            waited.json()["messages"]
                .as_array()
                .expect("messages")
                .last()
                .expect("one")["content"],
            "done"
        );
        let place = waited.header("content-location").to_owned();
        assert!(
            place.starts_with(&format!("{prefix}/threads/{thread}/runs/")),
            "{place}"
        );
        assert_eq!(
            waited.header("location"),
            format!("{}/join", place.strip_prefix(prefix).expect("a prefix"))
        );
        let run = place.rsplit('/').next().expect("an id");
        let joined = gateway
            .get(&format!("{prefix}/threads/{thread}/runs/{run}/join"))
            .await;
        assert_eq!(
            joined.json()["messages"]
                .as_array()
                .expect("messages")
                .last()
                .expect("one")["content"],
            "done"
        );
    }
    let failed = gateway
        .post(&format!("/threads/{thread}/runs/wait"), saying("fail boom"))
        .await;
    assert_eq!(
        (failed.code(), failed.json()),
        (
            200,
            json!({ "__error__": { "error": "RuntimeError", "message": "boom" } })
        )
    );
    let shown = gateway.get(&format!("/threads/{thread}")).await.json();
    assert_eq!(
        (&shown["status"], &shown["error"]["message"]),
        (&json!("error"), &json!("boom"))
    );
    let ask = json!({ "assistant_id": "lead_agent" });
    let idle = gateway
        .post(&format!("/threads/{thread}/runs/wait"), ask.clone())
        .await;
    assert!(
        idle.json()["messages"].is_array(),
        "a thread without pending tasks stays unchanged"
    );
    let fresh = gateway.thread().await;
    let empty = gateway
        .post(&format!("/threads/{fresh}/runs/wait"), ask)
        .await;
    assert_eq!(empty.json()["__error__"]["error"], "EmptyInputError");
}

#[tokio::test(start_paused = true)]
async fn waiting_response_sends_heartbeats() {
    let gateway = Gateway::new();
    let thread = gateway.thread().await;
    let body = saying("slow").to_string();
    let response = gateway
        .open("POST", &format!("/threads/{thread}/runs/wait"), body, &[])
        .await;
    let run = response.headers()["content-location"]
        .to_str()
        .expect("text")
        .rsplit('/')
        .next()
        .expect("an id")
        .to_owned();
    let read = axum::body::to_bytes(response.into_body(), 1_000);
    let cancel = async {
        tokio::time::sleep(Duration::from_secs(11)).await;
        gateway
            .post(&format!("/threads/{thread}/runs/{run}/cancel"), Value::Null)
            .await
    };
    let (body, _) = tokio::join!(read, cancel);
    let body = body.expect("a body");
    assert!(body.starts_with(b"\n\n{"), "{body:?}");
}

#[tokio::test]
async fn stateless_runs_name_their_thread() {
    let gateway = Gateway::new();
    let waited = gateway.post("/runs/wait", saying("say bye")).await;
    assert_eq!(waited.json()["messages"][1]["content"], "bye");
    assert!(waited.header("content-location").starts_with("/threads/"));
    let failed = gateway.post("/runs/wait", saying("fail boom")).await;
    assert_eq!(failed.json()["__error__"]["message"], "boom");
    let resume = gateway
        .post(
            "/runs/wait",
            json!({ "assistant_id": "lead_agent", "command": { "resume": "x" } }),
        )
        .await;
    assert_eq!(
        (resume.code(), resume.json()),
        (
            400,
            json!({ "detail": "You must provide a thread_id when resuming." })
        )
    );
}
