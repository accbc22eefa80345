//! Time to live, selected and absent fields, copies, patched metadata.

use serde_json::{Value, json};

use super::GONE;
use crate::support::{Gateway, saying};

#[tokio::test]
async fn thread_ttl_is_returned_only_if_requested() {
    let gateway = Gateway::new();
    let made = gateway
        .post(
            "/threads",
            json!({ "ttl": { "ttl": 5, "strategy": "delete" } }),
        )
        .await
        .json();
    let path = format!("/threads/{}", made["thread_id"].as_str().expect("an id"));
    assert_eq!(
        (made.get("ttl"), gateway.get(&path).await.json().get("ttl")),
        (None, None)
    );
    let ttl = gateway.get(&format!("{path}?include=ttl")).await.json()["ttl"].clone();
    assert_eq!(
        (
            &ttl["ttl_minutes"],
            &ttl["strategy"],
            ttl["expires_at"].is_string()
        ),
        (&json!(5.0), &json!("delete"), true)
    );
    gateway
        .send(
            "PATCH",
            &path,
            Some(json!({ "ttl": { "ttl": 60, "strategy": "keep_latest" } })),
        )
        .await;
    let ttl = gateway.get(&format!("{path}?include=ttl")).await.json()["ttl"].clone();
    assert_eq!(
        (&ttl["ttl_minutes"], &ttl["strategy"]),
        (&json!(60.0), &json!("keep_latest"))
    );
    let forever = gateway.thread().await;
    assert_eq!(
        gateway
            .get(&format!("/threads/{forever}?include=ttl"))
            .await
            .json()["ttl"],
        Value::Null
    );
}

#[tokio::test]
async fn run_fields_are_absent_before_the_first_run() {
    let gateway = Gateway::new();
    let thread = gateway.thread().await;
    let path = format!("/threads/{thread}");
    let before = gateway.get(&path).await.json();
    assert_eq!(
        (
            before.get("interrupts"),
            before.get("error"),
            &before["values"]
        ),
        (None, None, &Value::Null)
    );
    assert_eq!(
        (&before["config"], &before["state_updated_at"]),
        (&json!({}), &before["created_at"])
    );
    gateway
        .post(&format!("{path}/runs/wait"), saying("say a"))
        .await;
    let after = gateway.get(&path).await.json();
    assert_eq!(
        (&after["interrupts"], &after["error"], &after["config"]),
        (&json!({}), &Value::Null, &json!({ "configurable": {} }))
    );
    let found = gateway
        .post("/threads/search", json!({ "ids": [thread] }))
        .await
        .json();
    assert_eq!(found[0], after);
    gateway
        .post(&format!("{path}/runs/wait"), saying("fail boom"))
        .await;
    assert_eq!(
        gateway.get(&path).await.json()["error"],
        json!({ "error": "RuntimeError", "message": "boom" })
    );
}

#[tokio::test]
async fn values_are_extracted_from_each_listed_thread() {
    let gateway = Gateway::new();
    let thread = gateway.thread().await;
    gateway
        .post(&format!("/threads/{thread}/runs/wait"), saying("say hello"))
        .await;
    let body = json!({ "ids": [thread], "select": ["thread_id"],
        "extract": { "last": "values.messages[-1].content", "none": "metadata.x.y" } });
    let found = gateway.post("/threads/search", body).await.json();
    assert_eq!(
        found,
        json!([{ "thread_id": thread, "extracted": { "last": "hello", "none": null } }])
    );
}

#[tokio::test]
async fn threads_are_pruned_and_unknown_ones_are_not_copied() {
    let gateway = Gateway::new();
    let (first, second) = (gateway.thread().await, gateway.thread().await);
    let refused = gateway
        .post("/threads/prune", json!({ "thread_ids": [first, "nope"] }))
        .await;
    assert_eq!(
        (
            refused.code(),
            gateway.get(&format!("/threads/{first}")).await.code()
        ),
        (422, 200)
    );
    let kept = gateway
        .post(
            "/threads/prune",
            json!({ "thread_ids": [first, GONE], "strategy": "keep_latest" }),
        )
        .await;
    assert_eq!(
        (
            kept.json(),
            gateway.get(&format!("/threads/{first}")).await.code()
        ),
        (json!({ "pruned_count": 1 }), 200)
    );
    let pruned = gateway
        .post(
            "/threads/prune",
            json!({ "thread_ids": [first, second, GONE] }),
        )
        .await;
    assert_eq!(
        (
            pruned.json(),
            gateway.get(&format!("/threads/{first}")).await.code()
        ),
        (json!({ "pruned_count": 2 }), 404)
    );
    let copy = gateway
        .send("POST", &format!("/threads/{GONE}/copy"), None)
        .await;
    assert_eq!(
        (copy.code(), copy.json()),
        (409, json!({ "detail": "Conflict" }))
    );
    assert_eq!(
        gateway
            .send("POST", &format!("/api/threads/{GONE}/copy"), None)
            .await
            .code(),
        404
    );
}

#[tokio::test]
async fn newest_state_metadata_is_patched_on_an_idle_thread() {
    let gateway = Gateway::new();
    let thread = gateway.thread().await;
    let path = format!("/threads/{thread}/state");
    let patch = async |body: Value| gateway.send("PATCH", &path, Some(body)).await;
    let nothing = patch(json!({ "metadata": { "a": 1 } })).await;
    assert_eq!(nothing.code(), 404, "{}", nothing.text());
    gateway
        .post(&format!("/threads/{thread}/runs/wait"), saying("say a"))
        .await;
    let before = gateway.get(&path).await.json();
    let patched =
        patch(json!({ "metadata": { "a": { "b": 1 }, "run_id": "mine", "step": 99 } })).await;
    assert_eq!((patched.code(), patched.text()), (204, ""));
    let mut expected = before.clone();
    expected["metadata"]["a"] = json!({ "b": 1 });
    assert_eq!(gateway.get(&path).await.json(), expected);
    for wrong in [
        json!({}),
        json!({ "metadata": null }),
        json!({ "metadata": [] }),
        json!({ "metadata": "x" }),
        json!([]),
    ] {
        assert_eq!(patch(wrong.clone()).await.code(), 422, "{wrong}");
    }
    let unknown = gateway
        .send(
            "PATCH",
            &format!("/threads/{GONE}/state"),
            Some(json!({ "metadata": {} })),
        )
        .await;
    assert_eq!(unknown.code(), 404);
    let run = gateway
        .post(&format!("/threads/{thread}/runs"), saying("slow"))
        .await
        .json()["run_id"]
        .as_str()
        .expect("an id")
        .to_owned();
    assert_eq!(patch(json!({ "metadata": { "a": 2 } })).await.code(), 409);
    gateway
        .post(
            &format!("/threads/{thread}/runs/{run}/cancel?wait=1"),
            json!({}),
        )
        .await;
}
