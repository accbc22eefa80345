//! What sections of `config.yaml` do to a run, and what users make of their agents.

use serde_json::{Value, json};

use crate::rig::{Rig, body_with, list, text, words};

const LS: &str = r#"[[tool:ls {"description": "d", "path": "/mnt/user-data/workspace"}]]"#;
const READ: &str =
    r#"[[tool:read_file {"description": "d", "path": "/mnt/user-data/workspace/a.txt"}]]"#;

/// The texts of the results in a run with these words.
async fn results(rig: &Rig, request: &str) -> Vec<String> {
    let run = rig.say(&format!("{request} then say done")).await;
    assert_eq!(
        rig.shown_run(&run.thread, &run.run).await["status"],
        "success",
        "{request}"
    );
    assert_eq!(rig.model.rejections(), 0, "{request}");
    let values = run.last_values();
    list(&values["messages"])
        .iter()
        .filter(|message| message["type"] == "tool")
        .map(words)
        .collect()
}

#[tokio::test]
async fn a_tool_that_the_guardrails_deny_is_not_called() {
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
async fn a_long_result_is_a_file_of_the_thread() {
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
async fn calls_that_go_in_circles_end_the_run_with_a_reason() {
    let rig = Rig::with("loop_detection: {warn_threshold: 2, hard_limit: 3}").await;
    let run = rig.say(&format!("{} then say done", LS.repeat(6))).await;
    assert_eq!(
        rig.shown_run(&run.thread, &run.run).await["status"],
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
    let warned = |request: &Value| words(request).contains("the very same tool calls 2 times");
    assert!(warned(requests[2].messages.last().expect("a message")));
    let values = run.last_values();
    assert!(words(list(&values["messages"]).last().expect("a message")).contains("I stopped here"));
}

#[tokio::test]
async fn a_plan_is_in_the_threads_state() {
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
async fn an_agent_of_an_older_installation_speaks_with_its_soul() {
    let rig = Rig::start().await;
    let place = rig.gateway.home().join(".deer-flow/agents/scout");
    std::fs::create_dir_all(&place).expect("a place");
    std::fs::write(
        place.join("config.yaml"),
        "name: scout\ndescription: finds the way\ntool_groups: []\n",
    )
    .expect("written");
    std::fs::write(place.join("SOUL.md"), "You look before you leap.").expect("written");
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
