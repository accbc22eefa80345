//! Runs that call `bash`: in the kernel's sandbox, and on the host if the configuration permits it.

use serde_json::{Value, json};

use crate::rig::{CANARY, Rig, body, list, message_text, until};

/// Returns the result of one command as the model reads it.
async fn result(rig: &Rig, command: &str) -> String {
    let run = rig
        .run_prompt(&format!(
            "[[tool:bash {}]] then say done",
            json!({"description": "d", "command": command})
        ))
        .await;
    let values = run.last_values();
    let results: Vec<&Value> = list(&values["messages"])
        .iter()
        .filter(|message| message["type"] == "tool")
        .collect();
    assert_eq!(results.len(), 1, "{values}");
    message_text(results[0])
}

/// Counts the processes of this machine whose command line contains `mark`.
fn processes_with(mark: &str) -> usize {
    let processes = std::fs::read_dir("/proc").expect("proc").flatten();
    let lines = processes.filter_map(|process| std::fs::read(process.path().join("cmdline")).ok());
    lines
        .filter(|line| String::from_utf8_lossy(line).contains(mark))
        .count()
}

/// Starts a run whose command sleeps with `mark` in its command line; returns its thread and id.
async fn sleeping(rig: &Rig, mark: &str) -> (String, String) {
    let command = format!("(sleep {mark} & trap '' TERM; sleep {mark}; true)");
    let thread = rig.thread().await;
    let prompt = format!(
        "[[tool:bash {}]] then say done",
        json!({"description": "d", "command": command})
    );
    let run = rig.background(&thread, &body(&prompt)).await;
    // Two processes that create the sandbox, two shells and two `sleep`s.
    until("the command runs", async || {
        (processes_with(mark) >= 6).then_some(())
    })
    .await;
    (thread, run)
}

#[tokio::test]
#[ignore = "needs bubblewrap; make test-external runs it"]
async fn sandbox_command_sees_only_its_thread() {
    let rig = Rig::with_commands("{use: local}").await;
    let shown = result(
        &rig,
        "echo kept > /mnt/user-data/outputs/a.txt; pwd; cat ../outputs/a.txt; echo bad >&2; exit 3",
    )
    .await;
    assert_eq!(
        shown,
        "/mnt/user-data/workspace\nkept\nStd Error:\nbad\nExit Code: 3"
    );
    let home = rig.gateway.home().to_string_lossy().into_owned();
    let shown =
        result(&rig, "env; cat /proc/*/environ; cat /proc/1/root$HOME/../../config.yaml; ls / /root /home; cat /proc/self/mountinfo").await;
    assert!(
        !shown.contains(CANARY) && !shown.contains("GATEWAY_PORT"),
        "{shown}"
    );
    let shown = result(&rig, &format!("find {home}; cat {home}/../config.yaml")).await;
    assert!(
        !shown.contains(CANARY) && shown.contains("No such file"),
        "{shown}"
    );
    let shown = result(
        &rig,
        &format!(
            "exec 3<>/dev/tcp/127.0.0.1/{} && echo connected",
            rig.gateway.address().port()
        ),
    )
    .await;
    assert!(!shown.contains("connected"), "{shown}");
    assert!(rig.gateway.logs().contains("commands run in a sandbox"));
}

#[tokio::test]
#[ignore = "needs bubblewrap; make test-external runs it"]
async fn cancel_ends_every_process_in_the_sandbox() {
    let rig = Rig::with_commands("{use: local}").await;
    let (thread, run) = sleeping(&rig, "98761.5").await;
    let path = format!("/api/threads/{thread}/runs/{run}/cancel?wait=1");
    rig.request(reqwest::Method::POST, &path)
        .send()
        .await
        .expect("an answer");
    assert_eq!(rig.wait_for_end(&thread, &run).await, "interrupted");
    until("no process remains", async || {
        (processes_with("98761.5") == 0).then_some(())
    })
    .await;
}

#[tokio::test]
#[ignore = "needs bubblewrap; make test-external runs it"]
async fn killed_gateway_leaves_no_sandbox_process() {
    let mut rig = Rig::with_commands("{use: local}").await;
    sleeping(&rig, "98762.5").await;
    rig.gateway.kill9().await.expect("killed");
    until("no process remains", async || {
        (processes_with("98762.5") == 0).then_some(())
    })
    .await;
}

#[tokio::test]
#[ignore = "needs bubblewrap; make test-external runs it"]
async fn sandbox_command_timeout_ends_it_and_run_continues() {
    let rig = Rig::with_commands("{use: local, bash_command_timeout: 10}").await;
    let output = result(&rig, "echo begun; sleep 98763.5 & sleep 98763.5").await;
    assert_eq!(
        output,
        "begun\nThe command was ended because it took longer than 10 seconds."
    );
    until("no process remains", async || {
        (processes_with("98763.5") == 0).then_some(())
    })
    .await;
}

#[tokio::test]
async fn host_commands_need_opt_in_and_show_virtual_folders() {
    let rig = Rig::with_commands("{use: local, allow_host_bash: true}").await;
    let output = result(
        &rig,
        "pwd; echo x > /mnt/user-data/outputs/a.txt; ls /mnt/user-data/outputs; env",
    )
    .await;
    assert!(
        output.starts_with("/mnt/user-data/workspace\na.txt\n"),
        "{output}"
    );
    assert!(
        !output.contains("GATEWAY_PORT") && !output.contains(CANARY),
        "{output}"
    );
    assert!(rig.gateway.logs().contains("unsandboxed"));
}
