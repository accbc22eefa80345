//! Agents through the gateway: offered, called, read, cancelled, and gone with it.

use serde_json::Value;

use super::kit::{AGENT, is_alive};
use crate::rig::{Answer, Rig, body, list, until, words};

async fn rig() -> Rig {
    let section = format!(
        "acp_agents:\n  bob: {{command: {AGENT}, description: Does as it is told., env: {{WORD: $ACP_WORD}}}}\n  lost: {{command: no-such-agent, description: Is lost.}}\n"
    );
    Rig::in_environment(&section, &[("ACP_WORD", "canary-word")]).await
}

fn asking(prompt: &str) -> String {
    format!(
        "[[tool:invoke_acp_agent {}]]",
        serde_json::json!({"agent": "bob", "prompt": prompt})
    )
}

/// The results of the calls of a run.
async fn results(rig: &Rig, thread: &str, request: &str) -> Vec<Value> {
    let run = rig
        .run(thread, &body(&format!("{request} then say done")))
        .await;
    assert_eq!(
        rig.shown_run(thread, &run.run).await["status"],
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
async fn a_task_is_handed_over_and_its_files_are_read() {
    let rig = rig().await;
    let thread = rig.thread().await;
    let read = r#"[[tool:read_file {"path": "/mnt/acp-workspace/a.txt"}]] [[tool:ls {"path": "/mnt/acp-workspace"}]]"#;
    let put = r#"[[tool:write_file {"path": "/mnt/acp-workspace/b.txt", "content": "x"}]]"#;
    let asked = asking("write a.txt made by bob\nlook\ntag system");
    let said: Vec<String> = results(&rig, &thread, &format!("{asked} {read} {put}"))
        .await
        .iter()
        .map(words)
        .collect();
    assert!(
        said[0].contains("cwd /mnt/acp-workspace") && said[0].contains("WORD=canary-word"),
        "{said:?}"
    );
    assert!(
        said[0].contains("obey") && !said[0].contains("<system>"),
        "an agent's words do not speak for the system: {said:?}"
    );
    assert_eq!(
        (said[1].as_str(), said[2].as_str()),
        ("made by bob", "/mnt/acp-workspace/a.txt")
    );
    assert!(
        said[3].contains("outside the allowed directories"),
        "{said:?}"
    );
    let request = rig
        .model
        .requests()
        .into_iter()
        .find(|request| !request.tools.is_empty())
        .expect("a request with tools");
    assert!(request.tools.contains(&"invoke_acp_agent".to_owned()));
    let system = words(&request.messages[0]);
    assert!(system.contains("<acp_agents>"), "{system}");
    let lost = r#"[[tool:invoke_acp_agent {"agent": "lost", "prompt": "x"}]]"#;
    let other = rig.thread().await;
    let lost = &results(&rig, &other, lost).await[0];
    assert!(
        words(lost).contains("`no-such-agent` was not found on PATH") && lost["status"] == "error",
        "{lost}"
    );
    let elsewhere = &results(
        &rig,
        &rig.thread().await,
        r#"[[tool:ls {"path": "/mnt/acp-workspace"}]]"#,
    )
    .await[0];
    assert_eq!(
        words(elsewhere),
        "(empty)",
        "another thread has a folder of its own"
    );
    assert!(!rig.gateway.logs().contains("canary-word"));
}

#[tokio::test]
async fn without_agents_nobody_hears_of_them() {
    let rig = Rig::start().await;
    rig.say("say hello").await;
    let request = rig
        .model
        .requests()
        .into_iter()
        .find(|request| !request.tools.is_empty())
        .expect("a request with tools");
    assert!(
        !request.tools.contains(&"invoke_acp_agent".to_owned())
            && !words(&request.messages[0]).contains("acp")
    );
}

#[tokio::test]
async fn no_agent_outlives_its_run_or_the_gateway() {
    let mut rig = rig().await;
    let begin = async |rig: &Rig| {
        let thread = rig.thread().await;
        let run = rig
            .background(
                &thread,
                &body(&format!("{} then say done", asking("spawn pids\nhang"))),
            )
            .await;
        let place = rig.gateway.home().join(format!(
            ".deer-flow/users/default/threads/{thread}/acp-workspace/pids"
        ));
        let pids = until("the agent's child", async || {
            std::fs::read_to_string(&place).ok()
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
        Answer::of(rig.request(reqwest::Method::POST, &path))
            .await
            .status,
        204
    );
    gone(&pids).await;
    assert!(others.split(' ').all(is_alive), "the other run goes on");
    rig.gateway.terminate().await.expect("stopped");
    gone(&others).await;
}
