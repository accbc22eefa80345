//! `POST /api/threads/{thread}/history`.

use serde_json::json;

use crate::rig::{Rig, body, list, messages_of, text, visible_messages};

#[tokio::test]
async fn only_the_newest_entry_carries_the_messages() {
    let rig = Rig::start().await;
    let run = rig.run_prompt("then say x").await;
    let history = rig
        .post(
            &format!("/api/threads/{}/history", run.thread),
            &json!({"limit": 100}),
        )
        .await
        .ok();
    let entries = list(&history);
    assert!(entries.len() >= 2, "{history}");
    assert_eq!(
        visible_messages(&entries[0]["values"]),
        messages_of(&[("human", "then say x"), ("ai", "x")])
    );
    for message in list(&entries[0]["values"]["messages"])
        .iter()
        .filter(|message| message["type"] != "system")
    {
        assert_eq!(message["run_id"], *run.run, "{message}");
    }
    for (newer, older) in entries.iter().zip(&entries[1..]) {
        assert_eq!(newer["parent_checkpoint_id"], older["checkpoint_id"]);
        assert!(older["values"].get("messages").is_none(), "{older}");
    }
    // With a `checkpoint` here the web UI would turn every message into a fork.
    assert!(
        entries
            .iter()
            .all(|entry| entry.get("checkpoint").is_none()),
        "{history}"
    );
}

#[tokio::test]
async fn before_cursor_is_accepted_in_every_form() {
    let rig = Rig::start().await;
    let run = rig.run_prompt("then say x").await;
    rig.run(&run.thread, &body("then say y")).await;
    let path = format!("/api/threads/{}/history", run.thread);
    let all = rig.post(&path, &json!({"limit": 100})).await.ok();
    let cursor = text(&all[1]["checkpoint_id"]);
    let short = rig.post(&path, &json!({"limit": 1})).await.ok();
    assert_eq!(list(&short).len(), 1);
    assert_eq!(short[0]["checkpoint_id"], all[0]["checkpoint_id"]);
    for before in [
        json!(cursor),
        json!({"checkpoint_id": cursor}),
        json!({"configurable": {"checkpoint_id": cursor}}),
    ] {
        let page = rig
            .post(&path, &json!({"limit": 1, "before": before}))
            .await
            .ok();
        assert_eq!(
            page[0]["checkpoint_id"], all[2]["checkpoint_id"],
            "{before}"
        );
    }
}

#[tokio::test]
async fn missing_thread_has_no_history() {
    let rig = Rig::start().await;
    assert_eq!(
        rig.post("/api/threads/nobody/history", &json!({}))
            .await
            .ok(),
        json!([])
    );
}

#[tokio::test]
async fn limits_outside_one_to_a_hundred_are_rejected() {
    let rig = Rig::start().await;
    let path = format!("/api/threads/{}/history", rig.thread().await);
    for limit in [
        json!(0),
        json!(-1),
        json!(101),
        json!(1e30),
        json!("x"),
        json!([1]),
    ] {
        let refused = rig.post(&path, &json!({"limit": limit})).await;
        assert_eq!(refused.status, 422, "{limit}: {}", refused.text);
    }
}
