//! Tests of `deerflow flow`.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tokio::sync::mpsc;

use super::session::{RunExit, Terminal};
use super::*;
use crate::cli::{CheckArgs, DrawArgs, DrawFormat, ListArgs, RunFlowArgs};

const HELLO: &str = r#"meta: { schemaVersion: "2.0", name: Hello }
agents:
  agentDefs:
    - { agentId: writer, adapterKind: model }
graph:
  startNodeId: write
  nodes:
    - { nodeId: write, nodeKind: agent.main, agentId: writer }
    - { nodeId: finish, nodeKind: control.finish }
  edges:
    - { source: write, target: finish }
"#;

fn folder(files: &[(&str, &[u8])]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (path, bytes) in files {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
    folder
}

fn examples() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../flows");
    let entries = fs::read_dir(folder).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(paths.len() >= 5, "{paths:?}");
    paths
}

fn checked(files: &[PathBuf], json: bool, lenient: bool) -> (ExitCode, String, String) {
    let args = CheckArgs {
        files: files.to_vec(),
        json,
        lenient,
    };
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let code = check::check(&args, &mut out, &mut err).unwrap();
    (code, text(out), text(err))
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}

fn args(flow: &Path) -> RunFlowArgs {
    RunFlowArgs {
        flow: flow.to_owned(),
        prompt: Some("go".to_owned()),
        fake: true,
        until: None,
        json: false,
        input: None,
        recursion_limit: 100,
        file: Default::default(),
    }
}

/// Returns the exit and the two outputs of a run for a user who enters these lines.
async fn ran(args: &RunFlowArgs, typed: &[&str]) -> (RunExit, String, String) {
    let (sender, lines) = mpsc::channel(typed.len().max(1));
    for line in typed {
        sender.try_send((*line).to_owned()).unwrap();
    }
    drop(sender);
    let (_, mut interrupts) = mpsc::channel(1);
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let terminal = Terminal {
        out: &mut out,
        err: &mut err,
        lines: Some(lines),
        interrupts: &mut interrupts,
    };
    let environment = Environment::of(args.flow.parent().unwrap(), [("A", "b")]);
    let exit = start::run_flow_file(args, &environment, terminal)
        .await
        .unwrap();
    (exit, text(out), text(err))
}

#[test]
fn examples_have_no_findings() {
    let (code, out, err) = checked(&examples(), false, false);
    assert_eq!(out, "");
    assert_eq!(code, ExitCode::SUCCESS);
    assert_eq!(err.lines().count(), examples().len());
}

#[tokio::test]
async fn examples_complete_in_a_dry_run() {
    for path in examples() {
        let (exit, out, err) = ran(&args(&path), &[]).await;
        assert_eq!(exit, RunExit::Success, "{}: {err}", path.display());
        assert!(out.contains('/'), "{}: {out}", path.display());
        assert!(err.contains("completed with 0 tokens"), "{err}");
    }
}

#[tokio::test]
async fn first_flow_of_the_documentation_has_no_findings() {
    let docs = include_str!("../../../../../docs/flows.md");
    let (_, rest) = docs.split_once("```yaml\n").unwrap();
    let (hello, _) = rest.split_once("```").unwrap();
    let folder = folder(&[("hello.yaml", hello.as_bytes())]);
    let path = folder.path().join("hello.yaml");
    assert_eq!(checked(std::slice::from_ref(&path), false, false).1, "");
    let (_, out, _) = ran(&args(&path), &[]).await;
    assert_eq!(out, "write/normal/1\n");
}

#[test]
fn finding_names_file_line_code_and_pointer() {
    let bad = HELLO.replace(
        "agentId: writer }\n    - { nodeId: finish",
        "agentId: nobody }\n    - { nodeId: finish",
    );
    let folder = folder(&[("bad.yaml", bad.as_bytes())]);
    let path = folder.path().join("bad.yaml");
    let (code, out, _) = checked(std::slice::from_ref(&path), false, false);
    assert_eq!(code, ExitCode::FAILURE);
    let start = format!("{}:8: error agent_not_found: ", path.display());
    assert!(out.starts_with(&start), "{out}");
    assert!(
        out.trim_end().ends_with("(/graph/nodes/0/agentId)"),
        "{out}"
    );
    let (_, out, _) = checked(&[path], true, false);
    let reports: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(reports[0]["errors"][0]["code"], "agent_not_found");
    assert_eq!(reports[0]["valid"], false);
}

#[test]
fn hostile_files_have_findings_on_single_lines() {
    let aliases = "a: &a [x, x]\nmeta: &m\n  name: *a\ngraph: *m\n";
    let deep = format!("{}{}", "[".repeat(5_000), "]".repeat(5_000));
    let steering = HELLO.replace("agentId: writer }", "agentId: \"w\\e[2J\\nx: error: y\" }");
    let large = vec![b'x'; 3 << 20];
    let folder = folder(&[
        ("a.yaml", aliases.as_bytes()),
        ("b.yaml", deep.as_bytes()),
        ("c.yaml", steering.as_bytes()),
        ("d.yaml", &large),
        ("e.yaml", b"meta: \xff\xfe"),
        ("f.json", b"{\"meta\""),
        ("g.yaml", b""),
    ]);
    for file in [
        "a.yaml", "b.yaml", "c.yaml", "d.yaml", "e.yaml", "f.json", "g.yaml",
    ] {
        let path = folder.path().join(file);
        let (code, out, _) = checked(std::slice::from_ref(&path), false, false);
        assert_eq!(code, ExitCode::FAILURE, "{file}: {out}");
        let start = path.display().to_string();
        assert!(out.lines().all(|line| line.starts_with(&start)), "{out}");
        assert!(!out.contains('\u{1b}'), "{out}");
    }
}

#[test]
fn unreadable_file_does_not_hide_other_findings() {
    let folder = folder(&[("bad.yaml", b"meta: 1")]);
    let files = [
        folder.path().join("gone.yaml"),
        folder.path().join("bad.yaml"),
    ];
    let (code, out, err) = checked(&files, false, false);
    assert_eq!(code, ExitCode::from(2));
    assert!(out.contains("bad.yaml") && err.contains("gone.yaml: cannot be read"));
}

#[test]
fn lenient_check_accepts_unknown_node_kinds() {
    let odd = HELLO.replace("nodeKind: control.finish", "nodeKind: odd.thing");
    let folder = folder(&[("odd.yaml", odd.as_bytes())]);
    let files = [folder.path().join("odd.yaml")];
    assert_eq!(checked(&files, false, false).0, ExitCode::FAILURE);
    let (code, out, _) = checked(&files, false, true);
    assert_eq!(code, ExitCode::SUCCESS);
    assert!(out.contains("warning unknown_node_kind"), "{out}");
}

#[test]
fn agents_come_from_the_nearest_project() {
    let agent = b"---\nname: H\ndescription: d\nagentId: helper\noutput.kind: text\nadapterKind: fake\n---\nHelp.\n";
    let flow = HELLO.replace(
        "agentId: writer }\n    - { nodeId: finish",
        "agentRef: helper }\n    - { nodeId: finish",
    );
    let folder = folder(&[
        ("p/.agents-flow/agents/h.agent.md", agent),
        ("p/deep/one.yaml", flow.as_bytes()),
        ("p/flows/two.yaml", flow.as_bytes()),
    ]);
    let (code, out, _) = checked(&[folder.path().join("p/deep/one.yaml")], false, false);
    assert_eq!(code, ExitCode::SUCCESS, "{out}");
    let (code, _, _) = checked(&[folder.path().join("p/flows/two.yaml")], false, false);
    assert_eq!(code, ExitCode::FAILURE);
}

#[test]
fn drawing_is_mermaid_or_json() {
    let folder = folder(&[("hello.yaml", HELLO.as_bytes())]);
    let drawn = |format| {
        let args = DrawArgs {
            file: folder.path().join("hello.yaml"),
            format,
        };
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let code = draw::draw(&args, &mut out, &mut err).unwrap();
        assert_eq!(code, ExitCode::SUCCESS, "{}", text(err));
        text(out)
    };
    assert!(drawn(DrawFormat::Mermaid).contains("write"));
    let graph: Value = serde_json::from_str(&drawn(DrawFormat::Json)).unwrap();
    assert_eq!(graph["start"], "write");
}

#[tokio::test]
async fn json_lines_end_with_the_result() {
    let folder = folder(&[("hello.yaml", HELLO.as_bytes())]);
    let mut args = args(&folder.path().join("hello.yaml"));
    args.json = true;
    let (exit, out, _) = ran(&args, &[]).await;
    assert_eq!(exit, RunExit::Success);
    let events: Vec<Value> = out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(events[0]["eventType"], "run_started");
    let last = events.last().unwrap();
    assert_eq!(last["eventType"], "run_completed");
    assert_eq!(last["payload"]["result"], "write/normal/1");
}

#[tokio::test]
async fn run_stops_after_a_node() {
    let path = examples()
        .into_iter()
        .find(|path| path.ends_with("starter.yaml"))
        .unwrap();
    let mut args = args(&path);
    args.until = Some("sub-execute".to_owned());
    let (exit, out, err) = ran(&args, &[]).await;
    assert_eq!(
        (exit, out.as_str()),
        (RunExit::Success, "sub-execute/normal/1\n")
    );
    assert!(!err.contains("main-evaluate"), "{err}");
    args.json = true;
    let (_, out, _) = ran(&args, &[]).await;
    let last: Value = serde_json::from_str(out.lines().last().unwrap()).unwrap();
    assert_eq!(last["payload"]["result"], "sub-execute/normal/1");
    args.until = Some("ghost".to_owned());
    let environment = Environment::of(folder(&[]).path(), [("A", "b")]);
    let (_, mut interrupts) = mpsc::channel(1);
    let terminal = Terminal {
        out: &mut Vec::new(),
        err: &mut Vec::new(),
        lines: None,
        interrupts: &mut interrupts,
    };
    let error = start::run_flow_file(&args, &environment, terminal)
        .await
        .unwrap_err();
    assert!(error.to_string().contains("no node \"ghost\""), "{error}");
}

const ASKS: &str = r#"meta: { schemaVersion: "2.0", name: Asks }
agents: { agentDefs: [{ agentId: a, adapterKind: fake }] }
graph:
  startNodeId: draft
  nodes:
    - { nodeId: draft, nodeKind: agent.main, agentId: a }
    - { nodeId: gate, nodeKind: control.human, config: { prompt: Publish?, options: [publish, drop] } }
    - { nodeId: publish, nodeKind: agent.main, agentId: a }
    - { nodeId: drop, nodeKind: agent.main, agentId: a }
  edges:
    - { source: draft, target: gate }
    - { source: gate, sourceHandle: publish, target: publish }
    - { source: gate, sourceHandle: drop, target: drop }
"#;

#[tokio::test]
async fn person_answers_at_the_terminal() {
    let folder = folder(&[
        ("asks.yaml", ASKS.as_bytes()),
        ("config.yaml", b"config_version: 34\n"),
    ]);
    let mut args = args(&folder.path().join("asks.yaml"));
    args.fake = false;
    args.file.config = Some(folder.path().join("config.yaml"));
    let (exit, out, err) = ran(&args, &["maybe", "drop"]).await;
    assert_eq!((exit, out.as_str()), (RunExit::Success, "drop/normal/1\n"));
    assert!(
        err.contains("? gate: Publish?") && err.contains("not understood"),
        "{err}"
    );
    let (exit, _, err) = ran(&args, &[]).await;
    assert_eq!(exit, RunExit::Unanswered);
    assert!(err.contains("question of node gate has no answer"), "{err}");
}

#[tokio::test]
async fn failed_run_names_code_and_node() {
    let flow = HELLO.replace(
        "nodeKind: agent.main, agentId: writer",
        "nodeKind: control.subflow, config: { flowId: gone }",
    );
    let folder = folder(&[("one.yaml", flow.as_bytes())]);
    let (exit, out, err) = ran(&args(&folder.path().join("one.yaml")), &[]).await;
    assert_eq!((exit, out.as_str()), (RunExit::Failed, ""));
    assert!(
        err.contains("error subflow_not_found at node write"),
        "{err}"
    );
}

#[test]
fn list_has_flows_and_problems() {
    let folder = folder(&[
        ("config.yaml", b"config_version: 34\n"),
        ("flows/hello.yaml", HELLO.as_bytes()),
        ("flows/bad.yaml", b"meta: {name: x}\n"),
    ]);
    let environment = Environment::of(folder.path(), [("A", "b")]);
    let listed = |json| {
        let args = ListArgs {
            json,
            ..ListArgs::default()
        };
        let mut out = Vec::new();
        list::list(&args, &environment, &mut out).unwrap();
        text(out)
    };
    let table = listed(false);
    assert!(table.contains("hello  Hello"), "{table}");
    assert!(
        table.contains("bad.yaml:1: error schema_invalid"),
        "{table}"
    );
    let value: Value = serde_json::from_str(&listed(true)).unwrap();
    assert_eq!(value["flows"][0]["id"], "hello");
    assert_eq!(value["broken"][0]["file"], "bad.yaml");
}
