//! Copied turns of branches: their journal, feedback, and independence of the original.

use serde_json::{Value, json};

use super::branches::{agreed_ids, branch, conversation, feed, id_of, path_of, say};
use crate::support::Gateway;

#[tokio::test]
async fn copied_runs_have_their_rows_and_feedback() {
    let gateway = Gateway::new();
    let original = conversation(&gateway, &["say a", "say b"]).await;
    let before = feed(&gateway, &original).await;
    let path = path_of(&branch(&gateway, &original, &before[3].1).await);
    let copied = feed(&gateway, &path).await;
    let run = format!("{path}/runs/{}", copied[1].0);
    let events = gateway.get(&format!("{run}/events")).await.json();
    assert_eq!(events.as_array().map(Vec::len), Some(2), "{events}");
    let messages = gateway.get(&format!("{run}/messages")).await.json();
    assert_eq!(messages["data"][1]["content"]["id"], copied[1].1.as_str());
    let changes = gateway.get(&format!("{run}/workspace-changes")).await;
    assert_eq!(changes.json()["available"], false);

    let feedback = format!("{run}/feedback");
    let rated = gateway
        .send("PUT", &feedback, Some(json!({ "rating": -1 })))
        .await;
    assert_eq!(rated.code(), 200, "{}", rated.text());
    let page = gateway.get(&format!("{path}/messages/page")).await.json();
    assert_eq!(page["data"][1]["feedback"]["rating"], -1);
    let original_page = gateway.get(&format!("{original}/messages/page")).await;
    assert_eq!(original_page.json()["data"][1]["feedback"], Value::Null);
    assert_eq!(gateway.send("DELETE", &feedback, None).await.code(), 200);

    for unknown in [
        format!("{path}/runs/branch-seed-{}-7", id_of(&path)),
        format!("{original}/runs/{}", copied[1].0),
    ] {
        for resource in ["events", "messages", "workspace-changes", "feedback"] {
            let response = gateway.get(&format!("{unknown}/{resource}")).await;
            assert_eq!(response.code(), 404, "{unknown}/{resource}");
        }
    }
}

#[tokio::test]
async fn branch_and_original_are_deleted_independently() {
    let gateway = Gateway::new();
    let original = conversation(&gateway, &["say a"]).await;
    let answer = feed(&gateway, &original).await[1].1.clone();
    let first = path_of(&branch(&gateway, &original, &answer).await);
    let second = path_of(&branch(&gateway, &first, &answer).await);
    for deleted in [&first, &original] {
        assert_eq!(gateway.send("DELETE", deleted, None).await.code(), 200);
        assert_eq!(gateway.get(deleted).await.code(), 404);
        let page = gateway.get(&format!("{deleted}/messages/page")).await;
        assert_eq!(page.code(), 404);
    }
    assert_eq!(agreed_ids(&gateway, &second).await.len(), 2);
    say(&gateway, &second, "say b").await;
    assert_eq!(agreed_ids(&gateway, &second).await.len(), 4);
}
