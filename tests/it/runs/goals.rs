//! Goals of threads: what is set over HTTP is worked on by the agent.

use serde_json::{Value, json};

use crate::rig::{Rig, body, list, text, until};

/// A thread with a goal, run once with these words.
async fn run(rig: &Rig, request: &str) -> (String, Vec<Value>, Value) {
    let thread = rig.thread().await;
    rig.put(
        &format!("/api/threads/{thread}/goal"),
        &json!({"objective": "a finished report"}),
    )
    .await
    .ok();
    let run = rig.run(&thread, &body(request)).await;
    assert_eq!(rig.shown_run(&thread, &run.run).await["status"], "success");
    assert_eq!(rig.model.rejections(), 0);
    assert_eq!(
        list(&rig.get(&format!("/api/threads/{thread}/runs")).await.ok()).len(),
        1,
        "a continuation is part of its run"
    );
    let told = run
        .data("custom")
        .into_iter()
        .filter(|event| event["type"] == "goal_evaluated")
        .collect();
    let goal = rig.get(&format!("/api/threads/{thread}/goal")).await.ok()["goal"].clone();
    (thread, told, goal)
}

// The scripted model says what the user tells it to, and does not judge: what becomes of a judgement is tested in the harness.
#[tokio::test]
async fn a_goal_of_which_nobody_knows_how_it_stands_is_told_and_stays() {
    let rig = Rig::start().await;
    let (thread, told, goal) = run(&rig, "then say the report is finished").await;
    assert_eq!(
        (
            told.len(),
            &told[0]["satisfied"],
            &told[0]["stand_down_reason"]
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
        "the answer, and the judgement"
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
async fn a_goal_whose_run_was_stopped_stays_and_is_not_worked_on() {
    let rig = Rig::start().await;
    let thread = rig.thread().await;
    let path = format!("/api/threads/{thread}/goal");
    rig.put(&path, &json!({"objective": "x"})).await.ok();
    let run = rig.background(&thread, &body("[[slow 1000x20ms]]")).await;
    until("the model to be asked", async || {
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
    assert_eq!(rig.model.requests().len(), 1, "nobody was asked about it");
}
