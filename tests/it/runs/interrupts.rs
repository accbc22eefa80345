//! Breakpoints, resuming, and steps without end.

use serde_json::{Value, json};

use crate::rig::{Finished, Rig, body_with, text, words};

const CALL: &str =
    "[[tool:ls {\"description\": \"look\", \"path\": \"/mnt/user-data\"}]] then say done";

async fn stopped(rig: &Rig) -> Finished {
    let thread = rig.thread().await;
    let run = rig
        .run(
            &thread,
            &body_with(CALL, json!({"interrupt_before": ["tools"]})),
        )
        .await;
    assert_eq!(rig.shown_run(&thread, &run.run).await["status"], "success");
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
async fn a_breakpoint_stops_before_the_tools_and_nothing_goes_on_with_them() {
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
        let told: Vec<String> = rig
            .talk(&run.thread)
            .await
            .into_iter()
            .map(|(who, _)| who)
            .collect();
        assert_eq!(told, ["human", "ai", "tool", "ai"], "{why}");
        assert_eq!(
            words(
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
async fn a_new_message_instead_of_going_on_leaves_a_history_that_providers_take() {
    let rig = Rig::start().await;
    let run = stopped(&rig).await;
    let next = rig
        .run(
            &run.thread,
            &body_with("never mind then say fine", json!({})),
        )
        .await;
    assert_eq!(
        rig.shown_run(&run.thread, &next.run).await["status"],
        "success"
    );
    assert_eq!(
        rig.talk(&run.thread).await.last(),
        Some(&("ai".to_owned(), "fine".to_owned()))
    );
    assert_eq!(rig.model.rejections(), 0);
}

#[tokio::test]
async fn too_many_steps_end_in_an_error_and_then_the_end() {
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
    let shown = rig.shown_run(&thread, &run.run).await;
    assert_eq!(shown["status"], "error");
    assert!(text(&shown["error"]).contains("limit of 1"), "{shown}");
    assert_eq!(
        rig.get(&format!("/api/threads/{thread}")).await.ok()["status"],
        "error"
    );
    let next = rig
        .run(&thread, &body_with("then say fine", json!({})))
        .await;
    assert_eq!(rig.shown_run(&thread, &next.run).await["status"], "success");
}
