//! Breakpoints, resuming, and the recursion limit.

use serde_json::{Value, json};

use crate::rig::{FinishedRun, Rig, body_with, message_text, text};

const CALL: &str =
    "[[tool:ls {\"description\": \"look\", \"path\": \"/mnt/user-data\"}]] then say done";

async fn stopped(rig: &Rig) -> FinishedRun {
    let thread = rig.thread().await;
    let run = rig
        .run(
            &thread,
            &body_with(CALL, json!({"interrupt_before": ["tools"]})),
        )
        .await;
    assert_eq!(rig.get_run(&thread, &run.run).await["status"], "success");
    let state = rig.get(&format!("/api/threads/{thread}/state")).await.ok();
    assert_eq!(state["next"], json!(["tools"]), "{state}");
    assert_eq!(state["tasks"][0]["name"], "tools");
    assert_eq!(
        rig.get(&format!("/api/threads/{thread}")).await.ok()["status"],
        "interrupted"
    );
    run
}

#[tokio::test]
async fn breakpoint_stops_before_tools_and_null_input_resumes() {
    let rig = Rig::start().await;
    let run = stopped(&rig).await;
    assert_eq!(run.names().last(), Some(&"end"));
    assert!(
        run.data("updates")
            .iter()
            .any(|update| update.get("__interrupt__").is_some_and(Value::is_array))
    );
    for (more, why) in [
        (json!({"input": null}), "nothing new"),
        (
            json!({"input": null, "command": {"resume": "go"}}),
            "resume",
        ),
    ] {
        let run = stopped(&rig).await;
        let resumed = rig.run(&run.thread, &body_with("", more)).await;
        let actual: Vec<String> = rig
            .visible_messages(&run.thread)
            .await
            .into_iter()
            .map(|(role, _)| role)
            .collect();
        assert_eq!(actual, ["human", "ai", "tool", "ai"], "{why}");
        assert_eq!(
            message_text(
                resumed.last_values()["messages"]
                    .as_array()
                    .and_then(|all| all.last())
                    .expect("an answer")
            ),
            "done"
        );
        assert_eq!(
            rig.get(&format!("/api/threads/{}", run.thread)).await.ok()["status"],
            "idle"
        );
    }
}

#[tokio::test]
async fn new_message_at_breakpoint_leaves_valid_history() {
    let rig = Rig::start().await;
    let run = stopped(&rig).await;
    let next = rig
        .run(
            &run.thread,
            &body_with("never mind then say fine", json!({})),
        )
        .await;
    assert_eq!(
        rig.get_run(&run.thread, &next.run).await["status"],
        "success"
    );
    assert_eq!(
        rig.visible_messages(&run.thread).await.last(),
        Some(&("ai".to_owned(), "fine".to_owned()))
    );
    assert_eq!(rig.model.rejections(), 0);
}

#[tokio::test]
async fn recursion_limit_sends_error_then_end() {
    let rig = Rig::start().await;
    let thread = rig.thread().await;
    let run = rig
        .run(
            &thread,
            &body_with(CALL, json!({"config": {"recursion_limit": 1}})),
        )
        .await;
    let names = run.names();
    assert_eq!(names[names.len() - 2..], ["error", "end"]);
    let error = &run.data("error")[0];
    assert_eq!(error["name"], "GraphRecursionError");
    assert!(text(&error["message"]).contains("limit of 1"), "{error}");
    let stored = rig.get_run(&thread, &run.run).await;
    assert_eq!(stored["status"], "error");
    assert!(text(&stored["error"]).contains("limit of 1"), "{stored}");
    assert_eq!(
        rig.get(&format!("/api/threads/{thread}")).await.ok()["status"],
        "error"
    );
    let next = rig
        .run(&thread, &body_with("then say fine", json!({})))
        .await;
    assert_eq!(rig.get_run(&thread, &next.run).await["status"], "success");
}
