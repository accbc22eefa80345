//! `PATCH /api/threads/{thread}`.

use serde_json::json;

use crate::rig::Rig;

#[tokio::test]
async fn metadata_is_merged_key_by_key() {
    let rig = Rig::start().await;
    let thread = rig.thread().await;
    let path = format!("/api/threads/{thread}");
    rig.patch(&path, &json!({"metadata": {"a": 1, "b": {"c": 2}}}))
        .await
        .ok();
    let patched = rig
        .patch(&path, &json!({"metadata": {"b": null, "d": "e"}}))
        .await
        .ok();
    assert_eq!(patched["metadata"], json!({"a": 1, "b": null, "d": "e"}));
    assert_eq!(rig.get(&path).await.ok()["metadata"], patched["metadata"]);
}

#[tokio::test]
async fn concurrent_patches_are_all_applied() {
    let rig = Rig::start().await;
    let path = format!("/api/threads/{}", rig.thread().await);
    let patches = (0..8).map(|n| {
        let (rig, path) = (&rig, &path);
        async move {
            rig.patch(path, &json!({"metadata": {format!("k{n}"): n}}))
                .await
                .ok()
        }
    });
    futures_util::future::join_all(patches).await;
    let metadata = rig.get(&path).await.ok()["metadata"].clone();
    for n in 0..8 {
        assert_eq!(metadata[format!("k{n}")], n, "{metadata}");
    }
}

#[tokio::test]
async fn pinning_does_not_count_as_an_update() {
    let rig = Rig::start().await;
    let path = format!("/api/threads/{}", rig.thread().await);
    let before = rig.get(&path).await.ok()["updated_at"].clone();
    rig.patch(&path, &json!({"metadata": {"deerflow_pinned": true}}))
        .await
        .ok();
    assert_eq!(rig.get(&path).await.ok()["updated_at"], before);
}

#[tokio::test]
async fn only_known_threads_and_objects_are_patched() {
    let rig = Rig::start().await;
    rig.patch("/api/threads/nobody", &json!({"metadata": {}}))
        .await
        .refusal(404);
    let path = format!("/api/threads/{}", rig.thread().await);
    for metadata in [json!(5), json!("text"), json!([])] {
        rig.patch(&path, &json!({"metadata": metadata}))
            .await
            .refusal(422);
    }
    assert_eq!(rig.get(&path).await.ok()["metadata"], json!({}));
}
