//! `GET` and `POST /api/threads/{thread}/state`.

use serde_json::json;

use crate::rig::{Rig, body, list, messages_of, text, visible_messages};

#[tokio::test]
async fn finished_run_stores_messages_and_title_in_state() {
    let rig = Rig::start().await;
    let run = rig.run_prompt("Good morning then say Hello").await;
    let state = rig
        .get(&format!("/api/threads/{}/state", run.thread))
        .await
        .ok();
    assert_eq!(
        visible_messages(&state["values"]),
        messages_of(&[("human", "Good morning then say Hello"), ("ai", "Hello")])
    );
    assert_eq!(state["values"]["title"], "Good morning then say Hello");
    assert_eq!(state["next"], json!([]));
    assert_eq!(state["checkpoint"]["id"], state["checkpoint_id"]);
    assert!(
        state["parent_checkpoint_id"].is_string() && state["created_at"].is_string(),
        "{state}"
    );
}

#[tokio::test]
async fn renamed_thread_is_found_under_its_new_name() {
    let rig = Rig::start().await;
    let run = rig.run_prompt("then say x").await;
    let state = format!("/api/threads/{}/state", run.thread);
    rig.post(&state, &json!({"values": {"title": "A new name"}}))
        .await
        .ok();
    assert_eq!(rig.values(&run.thread).await["title"], "A new name");
    assert_eq!(
        rig.visible_messages(&run.thread).await.len(),
        2,
        "messages stay"
    );
    let found = rig.post("/api/threads/search", &json!({})).await.ok();
    assert_eq!(found[0]["values"], json!({"title": "A new name"}));
}

#[tokio::test]
async fn edit_of_old_checkpoint_starts_from_it() {
    let rig = Rig::start().await;
    let run = rig.run_prompt("then say x").await;
    let state = format!("/api/threads/{}/state", run.thread);
    let before = rig.get(&state).await.ok();
    rig.run(&run.thread, &body("then say y")).await;
    assert_eq!(rig.visible_messages(&run.thread).await.len(), 4);
    rig.post(
        &state,
        &json!({"values": {"title": "Back"}, "checkpoint_id": before["checkpoint_id"]}),
    )
    .await
    .ok();
    let after = rig.get(&state).await.ok();
    assert_eq!(after["values"]["title"], "Back");
    assert_eq!(visible_messages(&after["values"]).len(), 2);
    assert_eq!(after["parent_checkpoint_id"], before["checkpoint_id"]);
}

#[tokio::test]
async fn invalid_edit_changes_nothing() {
    let rig = Rig::start().await;
    let run = rig.run_prompt("then say x").await;
    let state = format!("/api/threads/{}/state", run.thread);
    let before = rig.get(&state).await.ok();
    let unknown = rig
        .post(&state, &json!({"values": {"nope": 1}}))
        .await
        .refusal(422);
    assert!(unknown.to_string().contains("nope"), "{unknown}");
    for edit in [
        json!({"values": 5}),
        json!({"values": {"messages": 5}}),
        json!({"values": {"messages": [5]}}),
    ] {
        let refused = rig.post(&state, &edit).await;
        assert!(
            matches!(refused.status.as_u16(), 400 | 422),
            "{edit}: {} {}",
            refused.status,
            refused.text
        );
        refused.refusal(refused.status.as_u16());
    }
    let missing =
        json!({"values": {"title": "x"}, "checkpoint_id": "1f1e587d-3940-6c3b-8004-ec8076329b7c"});
    rig.post(&state, &missing).await.refusal(404);
    assert_eq!(rig.get(&state).await.ok(), before);
    rig.get("/api/threads/nobody/state").await.refusal(404);
    rig.post(
        "/api/threads/nobody/state",
        &json!({"values": {"title": "x"}}),
    )
    .await
    .refusal(404);
}

#[tokio::test]
async fn a_busy_thread_is_not_edited() {
    let rig = Rig::start().await;
    let thread = rig.thread().await;
    let run = rig.background(&thread, &body("[[slow 1000x20ms]]")).await;
    let state = format!("/api/threads/{thread}/state");
    let refused = rig
        .post(&state, &json!({"values": {"title": "x"}}))
        .await
        .refusal(409);
    assert!(text(&refused).contains("in flight"), "{refused}");
    rig.delete(&format!("/api/threads/{thread}"))
        .await
        .refusal(409);
    rig.post(
        &format!("/api/threads/{thread}/runs/{run}/cancel?wait=1"),
        &json!({}),
    )
    .await;
    rig.post(&state, &json!({"values": {"title": "x"}}))
        .await
        .ok();
    assert_eq!(
        list(&rig.get(&format!("/api/threads/{thread}/runs")).await.ok()).len(),
        1
    );
}

#[tokio::test]
async fn concurrent_edits_are_serialized_or_rejected() {
    let rig = Rig::start().await;
    let run = rig.run_prompt("then say x").await;
    let state = format!("/api/threads/{}/state", run.thread);
    let edit = |n: usize| json!({"values": {"messages": [{"type": "human", "content": format!("edit {n}")}]}});
    let edits: Vec<_> = (0..4).map(edit).collect();
    let (a, b, c, d) = tokio::join!(
        rig.post(&state, &edits[0]),
        rig.post(&state, &edits[1]),
        rig.post(&state, &edits[2]),
        rig.post(&state, &edits[3])
    );
    let answers = [a, b, c, d];
    let accepted: Vec<_> = answers
        .iter()
        .filter(|answer| answer.status != 409)
        .collect();
    accepted.iter().for_each(|answer| {
        answer.ok();
    });
    let written = accepted.len();
    assert!(written >= 1);
    assert_eq!(
        rig.visible_messages(&run.thread).await.len(),
        1,
        "an edit replaces the whole list"
    );
    assert_eq!(
        rig.run(&run.thread, &body("then say y")).await.thread,
        run.thread
    );
    assert_eq!(rig.visible_messages(&run.thread).await.len(), 3);
}
