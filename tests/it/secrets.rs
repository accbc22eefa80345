//! The provider's key never reaches a client.

use serde_json::json;

use crate::rig::{CANARY, HttpResponse, Rig, body_with, text};

const MODES: [&str; 9] = [
    "values",
    "updates",
    "messages-tuple",
    "custom",
    "tasks",
    "checkpoints",
    "debug",
    "events",
    "messages",
];

#[tokio::test]
async fn no_stream_mode_contains_the_key() {
    let rig = Rig::start().await;
    let call = "[[tool:ls {\"description\": \"d\", \"path\": \"/mnt/user-data\"}]] then say x";
    for prefix in ["/api", ""] {
        for mode in MODES {
            let thread = rig
                .post("/api/threads", &json!({"thread_id": uuid(prefix, mode)}))
                .await
                .ok();
            let thread = text(&thread["thread_id"]);
            let body = body_with(
                call,
                json!({"stream_mode": [mode], "stream_subgraphs": true, "config": {}}),
            );
            let streamed = rig
                .post(&format!("{prefix}/threads/{thread}/runs/stream"), &body)
                .await;
            assert!(
                matches!(streamed.status.as_u16(), 200 | 422),
                "{prefix} {mode}: {}",
                streamed.text
            );
            assert!(!streamed.text.contains(CANARY), "{prefix} {mode}");
            assert!(!streamed.text.contains("base_url"), "{prefix} {mode}");
            assert!(
                !streamed
                    .text
                    .contains(&*rig.gateway.home().to_string_lossy()),
                "{prefix} {mode}: a path of this machine"
            );
        }
    }
    assert!(
        !rig.gateway.logs().contains(CANARY),
        "operators read the log"
    );
}

#[tokio::test]
async fn no_response_contains_the_key_or_client_secrets() {
    let rig = Rig::start().await;
    let thread = rig.thread().await;
    let more = json!({
        "config": {"configurable": {"app_config": "x"}, "context": {"secrets": {"token": "hush-1"}}},
        "context": {"github_token": "hush-2", "model_name": crate::rig::MODEL},
        "stream_mode": ["values", "updates", "messages-tuple", "custom"],
    });
    let run = rig.run(&thread, &body_with("[[error 401]]", more)).await;
    let mut answers: Vec<HttpResponse> = Vec::new();
    for path in [
        "",
        "/state",
        "/runs",
        &format!("/runs/{}", run.run),
        &format!("/runs/{}/events", run.run),
        "/messages/page",
    ] {
        answers.push(rig.get(&format!("/api/threads/{thread}{path}")).await);
    }
    answers.push(
        rig.post(
            &format!("/api/threads/{thread}/history"),
            &json!({"limit": 100}),
        )
        .await,
    );
    answers.push(rig.get("/api/models").await);
    let streamed = run
        .frames
        .iter()
        .map(|frame| String::from_utf8_lossy(&frame.raw).into_owned());
    for text in answers
        .into_iter()
        .map(|answer| answer.text)
        .chain(streamed)
    {
        for secret in [CANARY, "hush-1", "hush-2"] {
            assert!(!text.contains(secret), "{secret}: {text}");
        }
    }
}

/// Returns a thread id that both dialects accept, different for each pair.
fn uuid(prefix: &str, mode: &str) -> String {
    uuid::Uuid::new_v5(
        &uuid::Uuid::NAMESPACE_URL,
        format!("{prefix}/{mode}").as_bytes(),
    )
    .to_string()
}
