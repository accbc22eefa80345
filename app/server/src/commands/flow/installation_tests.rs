//! Runs at the terminal whose agents work in an installation.

use std::fs;

use harness::config_file::Environment;
use tokio::sync::mpsc;

use super::session::{RunExit, Terminal};
use super::start;
use crate::cli::{FileArgs, RunFlowArgs};

const FLOW: &str = r#"meta: { schemaVersion: "2.0", name: Files }
agents: { agentDefs: [{ agentId: lead, adapterKind: deerflow }, { agentId: reader, adapterKind: model }] }
graph:
  startNodeId: work
  nodes:
    - { nodeId: work, nodeKind: agent.main, agentId: lead }
    - { nodeId: load, nodeKind: loader.work-dir }
    - { nodeId: check, nodeKind: control.condition }
    - { nodeId: found, nodeKind: agent.sub, agentId: reader, config: { userPrompt: then say found } }
  edges:
    - { source: work, target: load }
    - { source: load, target: check }
    - { source: check, target: found, condition: "len(nodes.load.data) == 1" }
"#;

const PROMPT: &str = r#"[[tool:write_file {"description":"d","path":"/mnt/user-data/workspace/a.md","content":"kept"}]] [[tool:ask_clarification {"question":"Which color?","clarification_type":"missing_info"}]] then say done"#;

#[tokio::test]
async fn lead_agent_asks_at_the_terminal_and_its_files_are_loaded() {
    let home = tempfile::tempdir().unwrap();
    let (config, flow) = (
        home.path().join("config.yaml"),
        home.path().join("files.yaml"),
    );
    fs::write(&config, "config_version: 34\ndatabase: {backend: memory}\nmodels: [{name: s, use: scripted, model: s}]\n").unwrap();
    fs::write(&flow, FLOW).unwrap();
    let args = RunFlowArgs {
        flow,
        prompt: Some(PROMPT.to_owned()),
        fake: false,
        until: None,
        json: false,
        input: None,
        recursion_limit: 100,
        file: FileArgs {
            config: Some(config),
        },
    };
    let (answers, lines) = mpsc::channel(1);
    answers.send("then say blue".to_owned()).await.unwrap();
    let (_interrupt, mut interrupts) = mpsc::channel(1);
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let terminal = Terminal {
        out: &mut out,
        err: &mut err,
        lines: Some(lines),
        interrupts: &mut interrupts,
    };
    let environment = Environment::of(
        home.path(),
        [("DEER_FLOW_HOME", home.path().to_str().unwrap())],
    );
    let exit = start::run_flow_file(&args, &environment, terminal)
        .await
        .unwrap();
    let (out, err) = (
        String::from_utf8(out).unwrap(),
        String::from_utf8(err).unwrap(),
    );
    // The scripted model repeats its whole prompt from that word on.
    assert_eq!(exit, RunExit::Success, "{err}");
    assert!(out.starts_with("found\n"), "{out}\n{err}");
    assert!(err.contains("Which color?"), "{err}");
}
