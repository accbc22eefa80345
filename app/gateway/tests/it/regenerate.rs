//! Regeneration of an answer and editing of a question, from the preparation to the resulting
//! transcript.

use serde_json::{Value, json};

use crate::support::{Gateway, saying};

/// Returns the transcript as (run, id, text).
async fn transcript(gateway: &Gateway, thread: &str) -> Vec<(String, String, String)> {
    let page = gateway.get(&format!("{thread}/messages/page")).await.json();
    assert_eq!(
        (&page["has_more"], &page["next_before_seq"]),
        (&json!(false), &Value::Null)
    );
    let text = |value: &Value| match value {
        Value::Array(blocks) => blocks[0]["text"].as_str().unwrap_or_default().to_owned(),
        other => other.as_str().unwrap_or_default().to_owned(),
    };
    let rows = page["data"].as_array().expect("rows").clone();
    rows.iter()
        .map(|row| {
            (
                text(&row["run_id"]),
                text(&row["content"]["id"]),
                text(&row["content"]["content"]),
            )
        })
        .collect()
}

fn texts(transcript: &[(String, String, String)]) -> Vec<&str> {
    transcript
        .iter()
        .map(|(_, _, text)| text.as_str())
        .collect()
}

async fn run_message(gateway: &Gateway, texts_sent: &[&str]) -> String {
    let thread = format!("/api/threads/{}", gateway.thread().await);
    for text in texts_sent {
        gateway
            .post(&format!("{thread}/runs/wait"), saying(text))
            .await;
    }
    thread
}

/// Creates the prepared run and returns it.
async fn run_prepared(gateway: &Gateway, thread: &str, prepared: &Value) -> Value {
    let body = json!({ "input": prepared["input"], "checkpoint": prepared["checkpoint"], "metadata": prepared["metadata"] });
    let run = gateway.post(&format!("{thread}/runs"), body).await;
    assert_eq!(run.code(), 200, "{}", run.text());
    let id = thread.rsplit('/').next().expect("an id");
    gateway
        .wait_for_status(id, run.json()["run_id"].as_str().expect("an id"))
        .await
}

#[tokio::test]
async fn regenerated_answer_replaces_the_old_one() {
    let gateway = Gateway::new();
    for texts_sent in [&["say a"][..], &["say a", "say b"]] {
        let thread = run_message(&gateway, texts_sent).await;
        for _ in 0..2 {
            let before = transcript(&gateway, &thread).await;
            let (run, response, _) = before.last().expect("an answer").clone();
            let question = before[before.len() - 2].1.clone();
            let prepared = gateway
                .post(
                    &format!("{thread}/runs/regenerate/prepare"),
                    json!({ "message_id": response }),
                )
                .await
                .json();
            assert_eq!(prepared["target_run_id"], run.as_str());
            assert_eq!(prepared["input"]["messages"][0]["id"], question.as_str());
            let checkpoint = prepared["checkpoint"]["checkpoint_id"].clone();
            let metadata = json!({
                "regenerate_from_message_id": response, "regenerate_from_run_id": run, "regenerate_checkpoint_id": checkpoint,
            });
            assert_eq!(prepared["metadata"], metadata);
            assert_eq!(
                transcript(&gateway, &thread).await,
                before,
                "a preparation changes nothing"
            );

            let again = run_prepared(&gateway, &thread, &prepared).await;
            assert_eq!(again["status"], "success");
            let after = transcript(&gateway, &thread).await;
            assert_eq!(texts(&after), texts(&before));
            assert_eq!(
                after[after.len() - 2],
                (
                    again["run_id"].as_str().expect("an id").to_owned(),
                    question,
                    before[before.len() - 2].2.clone()
                )
            );
            assert_ne!(after.last().map(|row| &row.1), Some(&response));
            let state = gateway.get(&format!("{thread}/state")).await.json();
            let ids: Vec<&str> = state["values"]["messages"]
                .as_array()
                .expect("messages")
                .iter()
                .filter_map(|m| m["id"].as_str())
                .collect();
            assert_eq!(
                ids,
                after.iter().map(|row| row.1.as_str()).collect::<Vec<_>>()
            );
        }
    }
}

#[tokio::test]
async fn edited_question_replaces_the_turn_unless_its_run_fails() {
    let gateway = Gateway::new();
    for texts_sent in [&["say a"][..], &["say a", "say b"]] {
        let thread = run_message(&gateway, texts_sent).await;
        let before = transcript(&gateway, &thread).await;
        let (question, response) = (
            before[before.len() - 2].1.clone(),
            before.last().expect("an answer").1.clone(),
        );
        let path = format!("{thread}/runs/edit-regenerate/prepare");
        let edit =
            |text: &str, id: &str| json!({ "human_message_id": id, "replacement_text": text });
        let prepared = gateway.post(&path, edit("say c", &question)).await.json();
        assert_eq!(prepared["source_message_ids"], json!([question, response]));
        assert_eq!(prepared["metadata"]["replay_kind"], "edit");
        assert_eq!(
            prepared["metadata"]["edit_version_group_id"],
            question.as_str()
        );
        let replacement = prepared["replacement_human_message_id"]
            .as_str()
            .expect("an id")
            .to_owned();
        assert_ne!(replacement, question);
        let message = json!([{
            "type": "human", "id": replacement, "content": [{ "type": "text", "text": "say c" }], "additional_kwargs": {}, "name": null,
        }]);
        assert_eq!(prepared["input"]["messages"], message);
        assert_eq!(
            run_prepared(&gateway, &thread, &prepared).await["status"],
            "success"
        );
        let edited = transcript(&gateway, &thread).await;
        assert_eq!(
            texts(&edited),
            [texts(&before[..before.len() - 2]), vec!["say c", "c"]].concat()
        );

        let prepared = gateway
            .post(&path, edit("fail now", &replacement))
            .await
            .json();
        assert_eq!(
            prepared["metadata"]["edit_version_group_id"],
            question.as_str(),
            "versions of one question stay together"
        );
        assert_eq!(
            run_prepared(&gateway, &thread, &prepared).await["status"],
            "error"
        );
        assert_eq!(transcript(&gateway, &thread).await, edited);
    }
}

#[tokio::test]
async fn only_the_last_turn_of_an_idle_thread_is_regenerated() {
    let gateway = Gateway::new();
    let thread = run_message(&gateway, &["say a", "say b"]).await;
    let rows = transcript(&gateway, &thread).await;
    let regenerate = format!("{thread}/runs/regenerate/prepare");
    let edit = format!("{thread}/runs/edit-regenerate/prepare");
    let with =
        |id: &str| json!({ "message_id": id, "human_message_id": id, "replacement_text": "x" });
    for (path, id, code, detail) in [
        (
            &regenerate,
            rows[1].1.as_str(),
            409,
            "Only the latest assistant message can be regenerated",
        ),
        (&regenerate, "zz", 404, "Message zz not found"),
        (
            &edit,
            rows[0].1.as_str(),
            409,
            "Only the latest user message can be edited",
        ),
        (&edit, "zz", 404, "Message zz not found"),
    ] {
        let response = gateway.post(path, with(id)).await;
        assert_eq!(
            (response.code(), response.json()),
            (code, json!({ "detail": detail }))
        );
    }
    for body in [
        json!({ "human_message_id": "x", "replacement_text": " " }),
        json!({}),
    ] {
        assert_eq!(gateway.post(&edit, body).await.code(), 422);
    }
    let empty = format!(
        "/api/threads/{}/runs/regenerate/prepare",
        gateway.thread().await
    );
    assert_eq!(gateway.post(&empty, with("zz")).await.code(), 404);
    gateway
        .post(&format!("{thread}/runs"), saying("slow"))
        .await;
    let busy = gateway.post(&regenerate, with(&rows[3].1)).await;
    assert_eq!(
        (
            busy.code(),
            busy.json()["detail"]
                .as_str()
                .is_some_and(|text| text.contains("in flight"))
        ),
        (409, true)
    );
}
