//! `GET /api/threads/{thread}/messages/page`: the transcript of the web UI.

use serde_json::{Value, json};

use crate::rig::{Rig, body, list, message_text, text};

/// Creates a thread with this many turns of two messages.
async fn turns(rig: &Rig, count: usize) -> String {
    let thread = rig.thread().await;
    for n in 0..count {
        rig.run(&thread, &body(&format!("then say answer {n}")))
            .await;
    }
    thread
}

#[tokio::test]
async fn pages_have_no_gap_or_repetition() {
    let rig = Rig::start().await;
    let thread = turns(&rig, 5).await;
    let mut actual: Vec<String> = Vec::new();
    let mut cursor = Value::Null;
    loop {
        let before = cursor
            .as_u64()
            .map(|seq| format!("&before_seq={seq}"))
            .unwrap_or_default();
        let page = rig
            .get(&format!(
                "/api/threads/{thread}/messages/page?limit=3{before}"
            ))
            .await
            .ok();
        let rows = list(&page["data"]);
        let seqs: Vec<u64> = rows
            .iter()
            .map(|row| row["seq"].as_u64().expect("a number"))
            .collect();
        assert!(seqs.is_sorted_by(|a, b| a < b), "{seqs:?}");
        assert!(
            rows.len() == 3 || page["has_more"] == false,
            "a page is short only at the end: {page}"
        );
        assert_eq!(
            page["has_more"].as_bool(),
            Some(page["next_before_seq"].is_u64()),
            "{page}"
        );
        actual.splice(0..0, rows.iter().map(|row| message_text(&row["content"])));
        cursor = page["next_before_seq"].clone();
        if cursor.is_null() {
            break;
        }
    }
    let expected: Vec<String> = (0..5)
        .flat_map(|n| [format!("then say answer {n}"), format!("answer {n}")])
        .collect();
    assert_eq!(actual, expected);
}

#[tokio::test]
async fn row_has_role_run_and_time() {
    let rig = Rig::start().await;
    let thread = turns(&rig, 1).await;
    let page = rig
        .get(&format!("/api/threads/{thread}/messages/page"))
        .await
        .ok();
    let rows = list(&page["data"]);
    let kinds: Vec<&str> = rows.iter().map(|row| text(&row["event_type"])).collect();
    assert_eq!(kinds, ["llm.human.input", "llm.ai.response"]);
    for row in rows {
        for field in [
            "thread_id",
            "run_id",
            "event_type",
            "category",
            "content",
            "seq",
            "created_at",
            "metadata",
        ] {
            assert!(row.get(field).is_some(), "{field}: {row}");
        }
        assert_eq!(row["category"], "message");
    }
    assert_eq!(rows[1]["metadata"]["caller"], "lead_agent");
}

#[tokio::test]
async fn transcript_has_answer_as_changed_by_guards() {
    let rig = Rig::with("loop_detection:\n  warn_threshold: 1\n  hard_limit: 2\n").await;
    let thread = rig.thread().await;
    let call = r#"[[tool:ls {"path": "/mnt/user-data"}]]"#;
    rig.run(&thread, &body(&format!("{call}{call}then say done")))
        .await;
    let page = rig
        .get(&format!("/api/threads/{thread}/messages/page"))
        .await
        .ok();
    let actual: Vec<Value> = list(&page["data"])
        .iter()
        .map(|row| row["content"].clone())
        .collect();
    let expected = list(&rig.values(&thread).await["messages"]).to_vec();
    let facts = |messages: &[Value]| {
        messages
            .iter()
            .map(|message| {
                (
                    message["id"].clone(),
                    message_text(message),
                    message["tool_calls"].clone(),
                )
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(facts(&actual), facts(&expected));
    let last = actual.last().expect("an answer");
    assert!(
        message_text(last).contains("I stopped here") && last["tool_calls"] == json!([]),
        "{last}"
    );
}

#[tokio::test]
async fn a_rolled_back_run_leaves_no_trace_in_the_transcript() {
    let rig = Rig::start().await;
    let thread = turns(&rig, 1).await;
    let run = rig
        .background(&thread, &body("[[slow 1000x10ms]] never said"))
        .await;
    rig.post(
        &format!("/api/threads/{thread}/runs/{run}/cancel?wait=1&action=rollback"),
        &json!({}),
    )
    .await;
    let page = rig
        .get(&format!("/api/threads/{thread}/messages/page"))
        .await;
    assert_eq!(list(&page.ok()["data"]).len(), 2);
    assert!(!page.text.contains("never said"), "{}", page.text);
}

#[tokio::test]
async fn invalid_limits_and_cursors_are_rejected() {
    let rig = Rig::start().await;
    let thread = turns(&rig, 1).await;
    for query in [
        "limit=0",
        "limit=201",
        "limit=-1",
        "limit=x",
        "before_seq=0",
        "before_seq=-1",
        "before_seq=x",
        "after_seq=1",
    ] {
        let refused = rig
            .get(&format!("/api/threads/{thread}/messages/page?{query}"))
            .await;
        assert_eq!(refused.status, 422, "{query}: {}", refused.text);
    }
    rig.get("/api/threads/nobody/messages/page")
        .await
        .refusal(404);
}
