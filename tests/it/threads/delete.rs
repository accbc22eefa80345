//! `DELETE /api/threads/{thread}`.

use reqwest::Method;
use serde_json::json;

use crate::rig::{HttpResponse, Rig, body};

#[tokio::test]
async fn a_deleted_thread_is_gone_everywhere() {
    let rig = Rig::start().await;
    let run = rig.run_prompt("a secret of mine then say x").await;
    let (thread, run) = (run.thread, run.run);
    let deleted = rig.delete(&format!("/api/threads/{thread}")).await.ok();
    assert_eq!(deleted["success"], true);
    rig.delete(&format!("/api/threads/{thread}"))
        .await
        .refusal(404);
    for path in [
        "",
        "/state",
        &format!("/runs/{run}"),
        &format!("/runs/{run}/stream"),
        &format!("/runs/{run}/join"),
    ] {
        let answer = rig.get(&format!("/api/threads/{thread}{path}")).await;
        assert_eq!(answer.status, 404, "{path}: {}", answer.text);
        answer.refusal(404);
    }
    for path in ["/runs", "/runs/stream", "/runs/wait"] {
        rig.post(&format!("/api/threads/{thread}{path}"), &body("hi"))
            .await
            .refusal(404);
    }
    rig.post(
        &format!("/api/threads/{thread}/runs/{run}/cancel"),
        &json!({}),
    )
    .await
    .refusal(404);
    assert_eq!(
        rig.post(&format!("/api/threads/{thread}/history"), &json!({}))
            .await
            .ok(),
        json!([])
    );
    assert_eq!(
        rig.post("/api/threads/search", &json!({})).await.ok(),
        json!([])
    );
    // A new thread with the same id contains nothing of the old one.
    let again = rig
        .post("/api/threads", &json!({"thread_id": thread}))
        .await;
    if again.status == 200 {
        for path in ["", "/state", "/runs"] {
            let answer = rig.get(&format!("/api/threads/{thread}{path}")).await;
            assert!(
                !answer.text.contains("a secret of mine"),
                "{path}: {}",
                answer.text
            );
        }
    }
}

#[tokio::test]
async fn delete_accepts_any_text_as_id() {
    let rig = Rig::start().await;
    for id in ["nobody", "a%20b", "%2e%2e%2fetc", "a.b"] {
        let answer =
            HttpResponse::of(rig.request(Method::DELETE, &format!("/api/threads/{id}"))).await;
        assert!(
            matches!(answer.status.as_u16(), 404 | 422),
            "{id}: {} {}",
            answer.status,
            answer.text
        );
        answer.refusal(answer.status.as_u16());
    }
}

#[tokio::test]
async fn deleting_a_run_deletes_its_history_everywhere() {
    for backend in ["db", "jsonl", "memory"] {
        let rig = Rig::with(&format!("run_events: {{backend: {backend}}}")).await;
        let run = rig.run_prompt("a secret of mine then say x").await;
        let feed = format!("/api/threads/{}/messages", run.thread);
        assert!(
            rig.get(&feed).await.text.contains("a secret of mine"),
            "{backend}"
        );
        let deleted = rig
            .delete(&format!("/api/threads/{}/runs/{}", run.thread, run.run))
            .await;
        assert!(deleted.status.is_success(), "{backend}: {}", deleted.text);
        assert!(
            !rig.get(&feed).await.text.contains("a secret of mine"),
            "{backend}"
        );
    }
}
