//! Thumbs, regenerated answers and edited questions, as the web UI asks for them.

use serde_json::{Value, json};

use crate::rig::{Finished, Rig, body, body_with, list, text, words};

/// The transcript page as (run, text).
async fn feed(rig: &Rig, thread: &str) -> Vec<(String, String)> {
    let page = rig
        .get(&format!("/api/threads/{thread}/messages/page"))
        .await
        .ok();
    let rows = list(&page["data"]).iter();
    rows.map(|row| (text(&row["run_id"]).to_owned(), words(&row["content"])))
        .collect()
}

fn with_run(run: &str, said: &[&str]) -> Vec<(String, String)> {
    said.iter()
        .map(|words| (run.to_owned(), (*words).to_owned()))
        .collect()
}

/// Streams what was prepared, the way the web UI does.
async fn replay(rig: &Rig, thread: &str, prepared: &Value) -> Finished {
    let more = json!({"input": prepared["input"], "checkpoint": prepared["checkpoint"], "metadata": prepared["metadata"]});
    rig.run(thread, &body_with("", more)).await
}

#[tokio::test]
async fn a_regenerated_answer_is_the_only_one_that_shows_also_in_the_first_turn() {
    let rig = Rig::start().await;
    let first = rig.say("one").await;
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
        let asked = json!({"message_id": answer["id"]});
        let prepared = rig
            .post(
                &format!("/api/threads/{thread}/runs/regenerate/prepare"),
                &asked,
            )
            .await
            .ok();
        assert_eq!(prepared["target_run_id"], last.run.as_str());
        let again = replay(&rig, &thread, &prepared).await;
        assert_eq!(rig.settled(&thread, &again.run).await, "success");
        before.extend(with_run(&again.run, &[turn, &words(&answer)]));
        assert_eq!(feed(&rig, &thread).await, before);
        let values = rig.values(&thread).await;
        let shown: Vec<String> = list(&values["messages"]).iter().map(words).collect();
        assert_eq!(
            shown,
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
async fn an_edit_shows_when_it_succeeds_and_the_original_when_it_does_not() {
    let rig = Rig::start().await;
    let first = rig.say("one").await;
    let thread = first.thread.clone();
    let original = feed(&rig, &thread).await;
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
    assert_eq!(feed(&rig, &thread).await, original);
    let edited = replay(&rig, &thread, &prepared).await;
    assert_eq!(rig.settled(&thread, &edited.run).await, "success");
    assert_eq!(
        feed(&rig, &thread).await,
        with_run(&edited.run, &["better then say Better.", "Better."])
    );
    assert_eq!(
        rig.post(&path, &edit("x", &question)).await.refusal(404),
        format!("Message {} not found", text(&question))
    );
}

#[tokio::test]
async fn a_thumb_shows_on_the_last_answer_until_it_is_taken_back() {
    let mut rig = Rig::start().await;
    let run = rig.say("one").await;
    let path = format!("/api/threads/{}/runs/{}/feedback", run.thread, run.run);
    let given = rig
        .put(&path, &json!({"rating": 1, "comment": null}))
        .await
        .ok();
    rig.gateway.restart().await.expect("healthy again");
    let page = format!("/api/threads/{}/messages/page", run.thread);
    let shown = json!({"feedback_id": given["feedback_id"], "rating": 1, "comment": null});
    let feedback = async |rig: &Rig| {
        let page = rig.get(&page).await.ok();
        list(&page["data"])
            .iter()
            .map(|row| row["feedback"].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(feedback(&rig).await, [Value::Null, shown]);
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
