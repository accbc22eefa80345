//! Auxiliary model features: follow-up questions, polished drafts, compaction.

use serde_json::{Value, json};

use crate::support::{Gateway, saying};

#[tokio::test]
async fn follow_up_questions_come_from_a_model_and_never_fail() {
    let gateway = Gateway::new();
    let thread = gateway.thread().await;
    let path = format!("/api/threads/{thread}/suggestions");
    let ask = async |text: &str, more: Value| {
        let mut body = json!({ "messages": [{ "role": "user", "content": text }, { "role": "assistant", "content": [{ "type": "text", "text": "a" }] }] });
        body.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        let response = gateway.post(&path, body).await;
        assert_eq!(response.code(), 200, "{}", response.text());
        response.json()["suggestions"].clone()
    };
    // The scripted model follows the directive in its input.
    let directive = r#"[[usage 1,1]] then say ["one","two","three"]"#;
    assert_eq!(
        ask(directive, json!({ "n": 2 })).await,
        json!(["one", "two"])
    );
    assert_eq!(ask("[[error 500]]", json!({})).await, json!([]));
    assert_eq!(
        ask(directive, json!({ "model_name": "nobody" })).await,
        json!([])
    );
    for body in [
        json!({}),
        json!({ "messages": "x" }),
        json!({ "messages": [3] }),
        json!({ "messages": [], "n": 6 }),
        json!({ "messages": [], "model_name": 3 }),
    ] {
        assert_eq!(
            gateway.post(&path, body.clone()).await.code(),
            422,
            "{body}"
        );
    }
    assert_eq!(
        gateway
            .post("/api/threads/nobody/suggestions", json!({ "messages": [] }))
            .await
            .code(),
        404
    );
}

#[tokio::test]
async fn a_draft_is_polished_within_its_limits() {
    let gateway = Gateway::new();
    let polish = async |text: &str| {
        gateway
            .post(
                "/api/input-polish",
                json!({ "text": text, "locale": "en", "thread_id": "t" }),
            )
            .await
    };
    let polished = polish("[[usage 1,1]] then say Better.").await.json();
    assert_eq!(polished["changed"], true);
    assert!(
        polished["rewritten_text"]
            .as_str()
            .unwrap()
            .starts_with("Better."),
        "{polished}"
    );
    assert_eq!(
        (
            polish(" ").await.code(),
            polish(&"x".repeat(101)).await.code()
        ),
        (400, 400)
    );
    assert_eq!(polish("[[error 500]]").await.code(), 503);
    assert_eq!(
        gateway
            .post("/api/input-polish", json!({ "text": 3 }))
            .await
            .code(),
        422
    );
}

#[tokio::test]
async fn manual_compaction_retains_the_threads_messages() {
    let gateway = Gateway::new();
    let thread = gateway.thread().await;
    let path = format!("/api/threads/{thread}/compact");
    assert_eq!(
        gateway.post(&path, json!({})).await.json()["reason"],
        "not_enough_messages"
    );
    for text in ["say one", "say two", "say three"] {
        assert_eq!(
            gateway
                .post(&format!("/api/threads/{thread}/runs/wait"), saying(text))
                .await
                .code(),
            200
        );
    }
    assert_eq!(
        gateway.post(&path, json!({ "force": false })).await.json()["reason"],
        "not_needed"
    );
    assert_eq!(
        gateway
            .post(&path, json!({ "model_name": "none" }))
            .await
            .json(),
        json!({ "detail": "Context compaction is disabled." })
    );
    for body in [
        json!({ "keep": 3 }),
        json!({ "keep": { "type": "pages", "value": 1 } }),
        json!({ "keep": { "type": "fraction", "value": 2 } }),
        json!({ "force": "x" }),
    ] {
        assert_eq!(
            gateway.post(&path, body.clone()).await.code(),
            422,
            "{body}"
        );
    }
    let done = gateway.post(&path, json!({})).await.json();
    assert_eq!(
        (
            &done["compacted"],
            &done["removed_message_count"],
            &done["preserved_message_count"]
        ),
        (&json!(true), &json!(4), &json!(2)),
        "{done}"
    );
    let state = gateway
        .get(&format!("/api/threads/{thread}/state"))
        .await
        .json();
    assert_eq!(state["values"]["messages"].as_array().unwrap().len(), 6);
    assert_eq!(state["checkpoint"]["checkpoint_id"], done["checkpoint_id"]);
    assert!(!state["values"]["summary_text"].as_str().unwrap().is_empty());
    assert_eq!(
        gateway.post(&path, json!({})).await.json()["reason"],
        "not_enough_messages"
    );
    assert_eq!(
        gateway
            .post("/api/threads/nobody/compact", json!({}))
            .await
            .code(),
        404
    );
}

#[tokio::test]
async fn auxiliary_usage_is_recorded_on_the_thread_with_its_price() {
    let gateway = Gateway::new();
    let thread = gateway.thread().await;
    let usage = async || {
        gateway
            .get(&format!("/api/threads/{thread}/token-usage"))
            .await
            .json()
    };
    assert_eq!(
        (
            &usage().await["total_tokens"],
            usage().await.get("total_cost")
        ),
        (&json!(0), None)
    );
    let messages = json!([{ "role": "user", "content": r#"[[usage 2,1]] then say ["one"]"# }]);
    gateway
        .post(
            &format!("/api/threads/{thread}/suggestions"),
            json!({ "messages": messages }),
        )
        .await;
    let draft = json!({ "text": "[[usage 3,1]] then say Better.", "thread_id": thread });
    assert_eq!(gateway.post("/api/input-polish", draft).await.code(), 200);
    let usage = usage().await;
    assert_eq!(
        (&usage["total_tokens"], &usage["total_runs"]),
        (&json!(7), &json!(0)),
        "{usage}"
    );
    assert_eq!(
        usage["by_caller"],
        json!({ "lead_agent": 0, "subagent": 0, "middleware": 7 })
    );
    assert_eq!(
        usage["by_model"],
        json!({ "fake": { "tokens": 7, "runs": 0, "cost": 9.0 } })
    );
    assert_eq!(
        (&usage["total_cost"], &usage["currency"]),
        (&json!(9.0), &json!("EUR"))
    );
}
