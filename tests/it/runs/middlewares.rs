//! Effects of configuration sections on a run, and custom agents of users.

use serde_json::{Value, json};

use crate::rig::{Rig, body_with, list, message_text, text};

const LS: &str = r#"[[tool:ls {"description": "d", "path": "/mnt/user-data/workspace"}]]"#;
const READ: &str =
    r#"[[tool:read_file {"description": "d", "path": "/mnt/user-data/workspace/a.txt"}]]"#;

/// Returns the texts of the tool results of a run.
async fn results(rig: &Rig, request: &str) -> Vec<String> {
    let run = rig.run_prompt(&format!("{request} then say done")).await;
    assert_eq!(
        rig.get_run(&run.thread, &run.run).await["status"],
        "success",
        "{request}"
    );
    assert_eq!(rig.model.rejections(), 0, "{request}");
    let values = run.last_values();
    list(&values["messages"])
        .iter()
        .filter(|message| message["type"] == "tool")
        .map(message_text)
        .collect()
}

#[tokio::test]
async fn tool_denied_by_guardrails_is_not_called() {
    let rig = Rig::with(
        "guardrails: {enabled: true, provider: {use: allowlist, config: {denied_tools: [ls]}}}",
    )
    .await;
    let results = results(&rig, LS).await;
    assert!(
        results.len() == 1
            && results[0].contains("denied by the guardrails (oap.tool_not_allowed)"),
        "{results:?}"
    );
}

#[tokio::test]
async fn long_result_is_stored_as_thread_file() {
    let rig = Rig::with("tool_output: {externalize_min_chars: 50, exempt_tools: []}").await;
    let content = "word ".repeat(200);
    let write = format!(
        r#"[[tool:write_file {{"description": "d", "path": "/mnt/user-data/workspace/a.txt", "content": "{content}"}}]]"#
    );
    let results = results(&rig, &format!("{write} {READ}")).await;
    assert_eq!(results[0], "OK");
    assert!(
        results[1].contains("1000 characters")
            && results[1].contains("/mnt/user-data/outputs/.tool-results/read_file-"),
        "{results:?}"
    );
}

#[tokio::test]
async fn repeated_identical_calls_end_run_with_reason() {
    let rig = Rig::with("loop_detection: {warn_threshold: 2, hard_limit: 3}").await;
    let run = rig
        .run_prompt(&format!("{} then say done", LS.repeat(6)))
        .await;
    assert_eq!(
        rig.get_run(&run.thread, &run.run).await["status"],
        "success"
    );
    let requests = rig.model.requests();
    assert_eq!(
        requests
            .iter()
            .filter(|request| request.tools.contains(&"ls".to_owned()))
            .count(),
        3
    );
    let warned =
        |request: &Value| message_text(request).contains("the very same tool calls 2 times");
    assert!(warned(requests[2].messages.last().expect("a message")));
    let values = run.last_values();
    assert!(
        message_text(list(&values["messages"]).last().expect("a message"))
            .contains("I stopped here")
    );
}

#[tokio::test]
async fn todo_list_is_stored_in_thread_state() {
    let rig = Rig::start().await;
    let todos = json!([{"content": "look", "status": "completed"}]);
    let request = format!(
        "[[tool:write_todos {}]] then say done",
        json!({ "todos": todos })
    );
    let mut body = body_with(&request, json!({}));
    body["context"]["is_plan_mode"] = json!(true);
    let thread = rig.thread().await;
    rig.run(&thread, &body).await;
    assert_eq!(rig.values(&thread).await["todos"], todos);
}

#[tokio::test]
async fn agent_of_older_installation_uses_its_soul() {
    let rig = Rig::start().await;
    let folder = rig.gateway.home().join(".deer-flow/agents/scout");
    std::fs::create_dir_all(&folder).expect("a place");
    std::fs::write(
        folder.join("config.yaml"),
        "name: scout\ndescription: finds the way\ntool_groups: []\n",
    )
    .expect("written");
    std::fs::write(folder.join("SOUL.md"), "You look before you leap.").expect("written");
    let thread = rig.thread().await;
    let as_agent = |name: &str| {
        let mut body = body_with("then say done", json!({}));
        body["context"]["agent_name"] = json!(name);
        body
    };
    rig.run(&thread, &as_agent("scout")).await;
    let request = rig.model.requests().pop().expect("a request");
    let system = text(&request.messages[0]["content"]).to_owned();
    assert!(
        system.starts_with("You are scout,") && system.contains("You look before you leap."),
        "{system}"
    );
    assert!(
        !request.tools.contains(&"ls".to_owned()),
        "{:?}",
        request.tools
    );
    let refused = rig
        .post(&format!("/api/threads/{thread}/runs"), &as_agent("nobody"))
        .await;
    refused.refusal(404);
}
