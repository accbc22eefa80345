//! Tool calls that cannot be executed: the model reads the reason and continues.

use serde_json::Value;

use crate::rig::{FinishedRun, Rig, list, message_text};

/// Returns the result of the only call, after the run continued to its answer.
async fn result(rig: &Rig, request: &str) -> (FinishedRun, Value) {
    let run = rig.run_prompt(&format!("{request} then say done")).await;
    assert_eq!(
        rig.get_run(&run.thread, &run.run).await["status"],
        "success",
        "{request}"
    );
    let values = run.last_values();
    let messages = list(&values["messages"]).to_vec();
    assert_eq!(
        message_text(messages.last().expect("a message")),
        "done",
        "{request}"
    );
    assert_eq!(rig.model.rejections(), 0, "{request}");
    let results: Vec<Value> = messages
        .into_iter()
        .filter(|message| message["type"] == "tool")
        .collect();
    assert_eq!(results.len(), 1, "{request}: {results:?}");
    (run, results[0].clone())
}

#[tokio::test]
async fn invalid_arguments_are_reported_to_the_model() {
    let rig = Rig::start().await;
    for request in [
        "[[tool:write_file {}]]",
        "[[tool:write_file {\"description\": \"d\", \"path\": 5, \"content\": []}]]",
        "[[rawtool:write_file \"this is no json\"]]",
        "[[rawtool:write_file \"[1, 2]\"]]",
        "[[rawtool:write_file \"{\\\"path\\\": \"]]",
    ] {
        let (_, result) = result(&rig, request).await;
        assert_eq!(result["status"], "error", "{request}: {result}");
        assert!(!message_text(&result).is_empty(), "{request}");
    }
}

#[tokio::test]
async fn unknown_tool_is_reported_to_the_model() {
    let rig = Rig::start().await;
    let (_, result) = result(&rig, "[[ghost:make_coffee {\"cups\": 2}]]").await;
    assert_eq!(result["status"], "error", "{result}");
    assert!(message_text(&result).contains("make_coffee"), "{result}");
}

#[tokio::test]
async fn files_outside_thread_folders_are_inaccessible() {
    let rig = Rig::start().await;
    for path in [
        "/etc/passwd",
        "/mnt/user-data/../../etc/passwd",
        "../../../etc/passwd",
        "/proc/self/environ",
    ] {
        let (_, result) = result(
            &rig,
            &format!("[[tool:read_file {{\"description\": \"d\", \"path\": \"{path}\"}}]]"),
        )
        .await;
        let read = message_text(&result);
        assert!(
            !read.contains("root:") && !read.contains("GATEWAY_PORT"),
            "{path}: {read}"
        );
        assert!(
            !read.contains(&*rig.gateway.home().to_string_lossy()),
            "host paths stay private: {read}"
        );
    }
}

#[tokio::test]
async fn parallel_calls_are_answered_in_order() {
    let rig = Rig::start().await;
    let request = r#"[[tools:[{"name": "ls", "args": {"description": "a", "path": "/mnt/user-data/workspace"}}, {"name": "ls", "args": {"description": "b", "path": "/mnt/user-data/outputs"}}]]] then say done"#;
    let run = rig.run_prompt(request).await;
    let values = run.last_values();
    let calls: Vec<Value> = list(&values["messages"])
        .iter()
        .filter(|m| m["type"] == "ai")
        .flat_map(|m| list(&m["tool_calls"]).to_vec())
        .collect();
    let results: Vec<&Value> = list(&values["messages"])
        .iter()
        .filter(|m| m["type"] == "tool")
        .collect();
    assert_eq!((calls.len(), results.len()), (2, 2));
    assert!(
        calls
            .iter()
            .zip(results)
            .all(|(call, result)| call["id"] == result["tool_call_id"])
    );
    assert_eq!(rig.model.rejections(), 0);
}
