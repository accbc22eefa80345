//! Feedback, regenerated answers and edited questions, as the web UI requests them.

use serde_json::{Value, json};

use crate::rig::{FinishedRun, Rig, body, body_with, list, message_text, text};

/// Returns the transcript page as (run, text).
async fn transcript_page(rig: &Rig, thread: &str) -> Vec<(String, String)> {
    let page = rig
        .get(&format!("/api/threads/{thread}/messages/page"))
        .await
        .ok();
    let rows = list(&page["data"]).iter();
    rows.map(|row| {
        (
            text(&row["run_id"]).to_owned(),
            message_text(&row["content"]),
        )
    })
    .collect()
}

fn with_run(run: &str, actual_text: &[&str]) -> Vec<(String, String)> {
    actual_text
        .iter()
        .map(|words| (run.to_owned(), (*words).to_owned()))
        .collect()
}

/// Streams a prepared run, as the web UI does.
async fn replay(rig: &Rig, thread: &str, prepared: &Value) -> FinishedRun {
    let more = json!({"input": prepared["input"], "checkpoint": prepared["checkpoint"], "metadata": prepared["metadata"]});
    rig.run(thread, &body_with("", more)).await
}

#[tokio::test]
async fn regenerated_answer_replaces_original_in_transcript() {
    let rig = Rig::start().await;
    let first = rig.run_prompt("one").await;
    let thread = first.thread.clone();
    let mut before = Vec::new();
    let mut last = first;
    for turn in ["one", "two"] {
        if turn == "two" {
            last = rig.run(&thread, &body(turn)).await;
        }
        let answer = list(&last.last_values()["messages"])
            .last()
            .expect("an answer")
            .clone();
        let request = json!({"message_id": answer["id"]});
        let prepared = rig
            .post(
                &format!("/api/threads/{thread}/runs/regenerate/prepare"),
                &request,
            )
            .await
            .ok();
        assert_eq!(prepared["target_run_id"], last.run.as_str());
        let again = replay(&rig, &thread, &prepared).await;
        assert_eq!(rig.wait_for_end(&thread, &again.run).await, "success");
        before.extend(with_run(&again.run, &[turn, &message_text(&answer)]));
        assert_eq!(transcript_page(&rig, &thread).await, before);
        let values = rig.values(&thread).await;
        let texts: Vec<String> = list(&values["messages"]).iter().map(message_text).collect();
        assert_eq!(
            texts,
            before
                .iter()
                .map(|(_, words)| words.clone())
                .collect::<Vec<_>>()
        );
        assert_eq!(
            values["title"],
            last.last_values()["title"],
            "the title stays"
        );
        last = again;
    }
}

#[tokio::test]
async fn edit_replaces_question_only_if_its_run_succeeds() {
    let rig = Rig::start().await;
    let first = rig.run_prompt("one").await;
    let thread = first.thread.clone();
    let original = transcript_page(&rig, &thread).await;
    let path = format!("/api/threads/{thread}/runs/edit-regenerate/prepare");
    let messages = first.last_values()["messages"].clone();
    let question = list(&messages)
        .iter()
        .find(|message| message["type"] == "human")
        .expect("a question")["id"]
        .clone();
    let edit = |words: &str, id: &Value| json!({"human_message_id": id, "replacement_text": words});

    let prepared = rig
        .post(&path, &edit("better then say Better.", &question))
        .await
        .ok();
    assert_eq!(transcript_page(&rig, &thread).await, original);
    let edited = replay(&rig, &thread, &prepared).await;
    assert_eq!(rig.wait_for_end(&thread, &edited.run).await, "success");
    assert_eq!(
        transcript_page(&rig, &thread).await,
        with_run(&edited.run, &["better then say Better.", "Better."])
    );
    assert_eq!(
        rig.post(&path, &edit("x", &question)).await.refusal(404),
        format!("Message {} not found", text(&question))
    );
}

#[tokio::test]
async fn feedback_shows_on_last_answer_until_removed() {
    let mut rig = Rig::start().await;
    let run = rig.run_prompt("one").await;
    let path = format!("/api/threads/{}/runs/{}/feedback", run.thread, run.run);
    let given = rig
        .put(&path, &json!({"rating": 1, "comment": null}))
        .await
        .ok();
    rig.gateway.restart().await.expect("healthy again");
    let page = format!("/api/threads/{}/messages/page", run.thread);
    let expected = json!({"feedback_id": given["feedback_id"], "rating": 1, "comment": null});
    let feedback = async |rig: &Rig| {
        let page = rig.get(&page).await.ok();
        list(&page["data"])
            .iter()
            .map(|row| row["feedback"].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(feedback(&rig).await, [Value::Null, expected]);
    assert_eq!(
        rig.put(&path, &json!({"rating": 2})).await.refusal(400),
        "rating must be +1 or -1"
    );
    assert_eq!(rig.delete(&path).await.ok(), json!({"success": true}));
    assert_eq!(
        rig.delete(&path).await.refusal(404),
        "No feedback found for this run"
    );
    assert_eq!(feedback(&rig).await, [Value::Null, Value::Null]);
}
