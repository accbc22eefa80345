//! Goals of threads: the agent works on a goal that was set over HTTP.

use serde_json::{Value, json};

use crate::rig::{Rig, body, list, text, until};

/// Runs a thread with a goal once on this prompt.
async fn run(rig: &Rig, request: &str) -> (String, Vec<Value>, Value) {
    let thread = rig.thread().await;
    rig.put(
        &format!("/api/threads/{thread}/goal"),
        &json!({"objective": "a finished report"}),
    )
    .await
    .ok();
    let run = rig.run(&thread, &body(request)).await;
    assert_eq!(rig.get_run(&thread, &run.run).await["status"], "success");
    assert_eq!(rig.model.rejections(), 0);
    assert_eq!(
        list(&rig.get(&format!("/api/threads/{thread}/runs")).await.ok()).len(),
        1,
        "a continuation is part of its run"
    );
    let actual = run
        .data("custom")
        .into_iter()
        .filter(|event| event["type"] == "goal_evaluated")
        .collect();
    let goal = rig.get(&format!("/api/threads/{thread}/goal")).await.ok()["goal"].clone();
    (thread, actual, goal)
}

// The scripted model repeats what the user requests and cannot evaluate a goal; evaluations are
// tested in the harness.
#[tokio::test]
async fn goal_with_failed_evaluation_is_reported_and_stays() {
    let rig = Rig::start().await;
    let (thread, actual, goal) = run(&rig, "then say the report is finished").await;
    assert_eq!(
        (
            actual.len(),
            &actual[0]["satisfied"],
            &actual[0]["stand_down_reason"]
        ),
        (1, &json!(false), &json!("evaluation_failed"))
    );
    assert_eq!(
        (&goal["objective"], &goal["status"]),
        (&json!("a finished report"), &json!("active"))
    );
    assert_eq!(
        rig.model.requests().len(),
        2,
        "the answer and the evaluation"
    );
    let usage = rig
        .get(&format!("/api/threads/{thread}/token-usage"))
        .await
        .ok();
    assert!(
        usage["by_caller"]["middleware"]
            .as_u64()
            .is_some_and(|tokens| tokens > 0),
        "{usage}"
    );
    assert!(
        usage["context_usage"]["token_count"]
            .as_u64()
            .is_some_and(|tokens| tokens > 0),
        "{usage}"
    );
}

#[tokio::test]
async fn goal_of_cancelled_run_stays_without_continuation() {
    let rig = Rig::start().await;
    let thread = rig.thread().await;
    let path = format!("/api/threads/{thread}/goal");
    rig.put(&path, &json!({"objective": "x"})).await.ok();
    let run = rig.background(&thread, &body("[[slow 1000x20ms]]")).await;
    until("the first model call", async || {
        (rig.model.requests().len() == 1).then_some(())
    })
    .await;
    assert!(
        text(
            &rig.put(&path, &json!({"objective": "y"}))
                .await
                .refusal(409)
        )
        .contains("run in flight")
    );
    rig.post(
        &format!("/api/threads/{thread}/runs/{run}/cancel?wait=1"),
        &json!({}),
    )
    .await;
    let goal = rig.get(&path).await.ok()["goal"].clone();
    assert_eq!(
        (&goal["objective"], &goal["continuation_count"]),
        (&json!("x"), &json!(0))
    );
    assert_eq!(rig.model.requests().len(), 1, "the goal was not evaluated");
}
