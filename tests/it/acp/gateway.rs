//! ACP agents through the gateway: offered, called, read, cancelled, and cleaned up.

use serde_json::Value;

use super::support::{AGENT, is_alive};
use crate::rig::{HttpResponse, Rig, body, list, message_text, until};

async fn rig() -> Rig {
    let section = format!(
        "acp_agents:\n  bob: {{command: {AGENT}, description: Does as it is told., env: {{WORD: $ACP_WORD}}}}\n  lost: {{command: no-such-agent, description: Is lost.}}\n"
    );
    Rig::in_environment(&section, &[("ACP_WORD", "canary-word")]).await
}

fn task_call(prompt: &str) -> String {
    format!(
        "[[tool:invoke_acp_agent {}]]",
        serde_json::json!({"agent": "bob", "prompt": prompt})
    )
}

/// Returns the results of a run's tool calls.
async fn results(rig: &Rig, thread: &str, request: &str) -> Vec<Value> {
    let run = rig
        .run(thread, &body(&format!("{request} then say done")))
        .await;
    assert_eq!(
        rig.get_run(thread, &run.run).await["status"],
        "success",
        "{request}"
    );
    list(&run.last_values()["messages"])
        .iter()
        .filter(|message| message["type"] == "tool")
        .cloned()
        .collect()
}

#[tokio::test]
async fn task_is_delegated_and_its_files_are_read() {
    let rig = rig().await;
    let thread = rig.thread().await;
    let read = r#"[[tool:read_file {"path": "/mnt/acp-workspace/a.txt"}]] [[tool:ls {"path": "/mnt/acp-workspace"}]]"#;
    let put = r#"[[tool:write_file {"path": "/mnt/acp-workspace/b.txt", "content": "x"}]]"#;
    let task = task_call("write a.txt made by bob\nlook\ntag system");
    let actual_text: Vec<String> = results(&rig, &thread, &format!("{task} {read} {put}"))
        .await
        .iter()
        .map(message_text)
        .collect();
    assert!(
        actual_text[0].contains("cwd /mnt/acp-workspace")
            && actual_text[0].contains("WORD=canary-word"),
        "{actual_text:?}"
    );
    assert!(
        actual_text[0].contains("obey") && !actual_text[0].contains("<system>"),
        "tags in agent output are escaped: {actual_text:?}"
    );
    assert_eq!(
        (actual_text[1].as_str(), actual_text[2].as_str()),
        ("made by bob", "/mnt/acp-workspace/a.txt")
    );
    assert!(
        actual_text[3].contains("outside the allowed directories"),
        "{actual_text:?}"
    );
    let request = rig
        .model
        .requests()
        .into_iter()
        .find(|request| !request.tools.is_empty())
        .expect("a request with tools");
    assert!(request.tools.contains(&"invoke_acp_agent".to_owned()));
    let system = message_text(&request.messages[0]);
    assert!(system.contains("<acp_agents>"), "{system}");
    let lost = r#"[[tool:invoke_acp_agent {"agent": "lost", "prompt": "x"}]]"#;
    let other = rig.thread().await;
    let lost = &results(&rig, &other, lost).await[0];
    assert!(
        message_text(lost).contains("`no-such-agent` was not found on PATH")
            && lost["status"] == "error",
        "{lost}"
    );
    let elsewhere = &results(
        &rig,
        &rig.thread().await,
        r#"[[tool:ls {"path": "/mnt/acp-workspace"}]]"#,
    )
    .await[0];
    assert_eq!(
        message_text(elsewhere),
        "(empty)",
        "each thread has its own folder"
    );
    assert!(!rig.gateway.logs().contains("canary-word"));
}

#[tokio::test]
async fn no_acp_tool_is_offered_without_agents() {
    let rig = Rig::start().await;
    rig.run_prompt("say hello").await;
    let request = rig
        .model
        .requests()
        .into_iter()
        .find(|request| !request.tools.is_empty())
        .expect("a request with tools");
    assert!(
        !request.tools.contains(&"invoke_acp_agent".to_owned())
            && !message_text(&request.messages[0]).contains("acp")
    );
}

#[tokio::test]
async fn acp_agents_end_with_their_run_and_the_gateway() {
    let mut rig = rig().await;
    let begin = async |rig: &Rig| {
        let thread = rig.thread().await;
        let run = rig
            .background(
                &thread,
                &body(&format!("{} then say done", task_call("spawn pids\nhang"))),
            )
            .await;
        let pid_file = rig.gateway.home().join(format!(
            ".deer-flow/users/default/threads/{thread}/acp-workspace/pids"
        ));
        let pids = until("the agent's child", async || {
            std::fs::read_to_string(&pid_file).ok()
        })
        .await;
        assert!(pids.split(' ').all(is_alive), "{pids}");
        (thread, run, pids)
    };
    let gone = async |pids: &str| {
        until("the agent to end", async || {
            (!pids.split(' ').any(is_alive)).then_some(())
        })
        .await
    };
    let (thread, run, pids) = begin(&rig).await;
    let (.., others) = begin(&rig).await;
    let path = format!("/api/threads/{thread}/runs/{run}/cancel?wait=1");
    assert_eq!(
        HttpResponse::of(rig.request(reqwest::Method::POST, &path))
            .await
            .status,
        204
    );
    gone(&pids).await;
    assert!(others.split(' ').all(is_alive), "the other run continues");
    rig.gateway.terminate().await.expect("stopped");
    gone(&others).await;
}
