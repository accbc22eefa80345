//! `POST /api/threads/search`.

use serde_json::{Value, json};

use crate::rig::{Rig, list, text};

const SEARCH: &str = "/api/threads/search";

async fn ids(rig: &Rig, query: Value) -> Vec<String> {
    let found = rig.post(SEARCH, &query).await.ok();
    list(&found)
        .iter()
        .map(|thread| text(&thread["thread_id"]).to_owned())
        .collect()
}

/// Creates three threads, oldest first, with one metadata value each.
async fn three(rig: &Rig) -> Vec<String> {
    for (id, value) in [
        ("one", json!(1)),
        ("two", json!(true)),
        ("three", json!("1")),
    ] {
        rig.post(
            "/api/threads",
            &json!({"thread_id": id, "metadata": {"mark": value}}),
        )
        .await
        .ok();
    }
    ["one", "two", "three"].map(str::to_owned).to_vec()
}

#[tokio::test]
async fn the_newest_comes_first_and_pages_do_not_overlap() {
    let rig = Rig::start().await;
    three(&rig).await;
    assert_eq!(ids(&rig, json!({})).await, ["three", "two", "one"]);
    assert_eq!(ids(&rig, json!({"limit": 2})).await, ["three", "two"]);
    assert_eq!(ids(&rig, json!({"limit": 2, "offset": 2})).await, ["one"]);
    assert_eq!(ids(&rig, json!({"limit": 2, "offset": 9})).await, [""; 0]);
}

#[tokio::test]
async fn pinned_threads_come_before_all_others() {
    let rig = Rig::start().await;
    three(&rig).await;
    rig.patch(
        "/api/threads/one",
        &json!({"metadata": {"deerflow_pinned": true}}),
    )
    .await
    .ok();
    assert_eq!(ids(&rig, json!({})).await, ["one", "three", "two"]);
}

#[tokio::test]
async fn metadata_is_matched_with_its_type() {
    let rig = Rig::start().await;
    three(&rig).await;
    assert_eq!(ids(&rig, json!({"metadata": {"mark": 1}})).await, ["one"]);
    assert_eq!(
        ids(&rig, json!({"metadata": {"mark": true}})).await,
        ["two"]
    );
    assert_eq!(
        ids(&rig, json!({"metadata": {"mark": "1"}})).await,
        ["three"]
    );
    assert_eq!(
        ids(&rig, json!({"metadata": {"mark": null}})).await,
        [""; 0]
    );
    assert_eq!(
        ids(&rig, json!({"metadata": {"other": null}})).await,
        [""; 0]
    );
}

#[tokio::test]
async fn sidebar_request_is_supported() {
    let rig = Rig::start().await;
    three(&rig).await;
    let query = json!({
        "limit": 50, "offset": 0, "sort_by": "updated_at", "sort_order": "desc",
        "select": ["thread_id", "updated_at", "values", "metadata"],
    });
    let found = rig.post(SEARCH, &query).await.ok();
    assert_eq!(list(&found).len(), 3);
    assert_eq!(found[0]["values"], json!({}));
}

#[tokio::test]
async fn invalid_filters_and_limits_are_rejected() {
    let rig = Rig::start().await;
    three(&rig).await;
    for query in [
        json!({"limit": 0}),
        json!({"limit": -1}),
        json!({"limit": 1001}),
        json!({"limit": 18_446_744_073_709_551_615_u64}),
        json!({"limit": "ten"}),
        json!({"limit": 1.5}),
        json!({"offset": -1}),
        json!({"offset": {}}),
        json!({"metadata": "mark"}),
        json!({"metadata": {"a key": 1}}),
        json!({"metadata": {"mark": {"deep": 1}}}),
    ] {
        let refused = rig.post(SEARCH, &query).await;
        assert_eq!(refused.status, 422, "{query}: {}", refused.text);
        refused.refusal(422);
    }
    assert_eq!(ids(&rig, json!({})).await.len(), 3);
}
