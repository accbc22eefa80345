//! Metadata: limited as it is sent and as it is stored.

use futures_util::future::join_all;
use serde_json::{Value, json};

use super::{METADATA, assert_refused, lead_thread, sized};
use crate::support::{Gateway, saying_with};

#[tokio::test]
async fn metadata_of_each_object_is_limited() {
    let gateway = Gateway::new();
    let thread = lead_thread(&gateway).await;
    let run = |metadata| saying_with("say x", json!({ "metadata": metadata }));
    let cron = |metadata| {
        saying_with(
            "say x",
            json!({ "metadata": metadata, "schedule": "0 3 * * *" }),
        )
    };
    let assistant = |metadata| json!({ "graph_id": "lead_agent", "metadata": metadata });
    let plain = |metadata| json!({ "metadata": metadata });
    let bodies: [(&str, &dyn Fn(Value) -> Value); 10] = [
        ("/threads", &plain),
        ("/api/threads", &plain),
        ("/assistants", &assistant),
        ("/runs/wait", &run),
        (&format!("/threads/{thread}/runs/wait"), &run),
        (&format!("/api/threads/{thread}/runs/wait"), &run),
        (&format!("/threads/{thread}/runs/stream"), &run),
        ("/runs/crons", &cron),
        (&format!("/threads/{thread}/runs/crons"), &cron),
        ("/runs/batch", &|metadata| json!([run(metadata)])),
    ];
    for (path, body) in bodies {
        let accepted = gateway.post(path, body(sized(METADATA))).await;
        assert_eq!(accepted.code(), 200, "{path}");
        let refused = gateway.post(path, body(sized(METADATA + 1))).await;
        assert_refused(&refused, "metadata", METADATA);
    }
    let nested = json!({ "config": { "metadata": sized(METADATA + 1) } });
    let refused = gateway
        .post("/runs/wait", saying_with("say x", nested))
        .await;
    assert_refused(&refused, "config.metadata", METADATA);
}

#[tokio::test]
async fn repeated_patches_of_a_thread_do_not_exceed_the_limit() {
    let gateway = Gateway::new();
    for prefix in ["", "/api"] {
        let thread = gateway.thread().await;
        let path = format!("{prefix}/threads/{thread}");
        let patch = async |key: &str, size: usize| {
            let value = "x".repeat(size);
            let body = json!({ "metadata": { key: value } });
            gateway.send("PATCH", &path, Some(body)).await
        };
        assert_eq!(patch("a", 30_000).await.code(), 200);
        assert_eq!(patch("b", 30_000).await.code(), 200);
        // {"a":"..","b":"..","c":".."} has 22 bytes besides the texts.
        let last = METADATA - 60_022;
        let refused = patch("c", last + 1).await;
        assert_refused(&refused, "metadata", METADATA);
        let stored = gateway.get(&path).await.json();
        assert_eq!(stored["metadata"]["c"], Value::Null);
        assert_eq!(patch("c", last).await.code(), 200);
        let refused = patch("d", 0).await;
        assert_eq!(refused.code(), 413);
        assert_eq!(patch("a", 0).await.code(), 200);
        assert_eq!(patch("d", 29_000).await.code(), 200);
    }
}

#[tokio::test]
async fn concurrent_patches_of_a_thread_do_not_exceed_the_limit() {
    let gateway = Gateway::new();
    let thread = gateway.thread().await;
    let path = format!("/threads/{thread}");
    let (gateway, path) = (&gateway, path.as_str());
    let answers = join_all((0..10).map(|n| async move {
        let body = json!({ "metadata": { format!("k{n}"): "x".repeat(20_000) } });
        gateway.send("PATCH", path, Some(body)).await.code()
    }))
    .await;
    assert_eq!(answers.iter().filter(|code| **code == 200).count(), 3);
    assert_eq!(answers.iter().filter(|code| **code == 413).count(), 7);
    let stored = gateway.get(path).await.json();
    let metadata = stored["metadata"].as_object().expect("metadata");
    let present = metadata.keys().filter(|key| key.starts_with('k')).count();
    assert_eq!(present, 3);
}

#[tokio::test]
async fn patches_of_assistant_cron_and_state_do_not_exceed_the_limit() {
    let gateway = Gateway::new();
    let thread = lead_thread(&gateway).await;
    let state = format!("/threads/{thread}/state");
    let values = json!({ "values": { "title": "T" } });
    assert_eq!(gateway.post(&state, values).await.code(), 200);
    let assistant = gateway
        .post("/assistants", json!({ "graph_id": "lead_agent" }))
        .await
        .json();
    let assistant = assistant["assistant_id"].as_str().expect("an id");
    let cron = saying_with("say x", json!({ "schedule": "0 3 * * *" }));
    let cron = gateway.post("/runs/crons", cron).await.json();
    let cron = cron["cron_id"].as_str().expect("an id");
    for path in [
        format!("/assistants/{assistant}"),
        format!("/runs/crons/{cron}"),
        state.clone(),
    ] {
        let patch = async |key: &str| {
            let body = json!({ "metadata": { key: "x".repeat(40_000) } });
            gateway.send("PATCH", &path, Some(body)).await
        };
        assert!(matches!(patch("a").await.code(), 200 | 204), "{path}");
        let before = gateway.get(&path).await.json();
        let refused = patch("b").await;
        assert_eq!(refused.code(), 413, "{path}");
        let detail = refused.json()["detail"].to_string();
        assert!(
            detail.contains("metadata is limited to 65536 bytes as JSON, this one has 80"),
            "{detail}"
        );
        assert_eq!(gateway.get(&path).await.json(), before, "{path}");
    }
}
