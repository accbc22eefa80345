//! Tests of validation: each code, and its place.

use serde_json::{Value, json};

use super::{Options, validate};
use crate::assets::{MemoryAssets, PromptAssetManifest};
use crate::binding::AdapterList;
use crate::finding::{Finding, Validation};
use crate::schema::Document;

fn flow(nodes: Value, edges: Value) -> Value {
    json!({
        "meta": {"schemaVersion": "2.0", "name": "case"},
        "agents": {"agentDefs": [{"agentId": "a", "adapterKind": "fake"}]},
        "graph": {"startNodeId": nodes[0]["nodeId"], "nodes": nodes, "edges": edges},
    })
}

fn check(flow: Value) -> Validation {
    check_with(flow, &Options::default())
}

fn check_with(flow: Value, options: &Options<'_>) -> Validation {
    let document = Document::from_value(flow).unwrap();
    let adapters = AdapterList::new(["fake"]);
    validate(
        &document,
        &PromptAssetManifest::default(),
        &adapters,
        options,
    )
}

fn codes(findings: &[Finding]) -> Vec<&str> {
    findings
        .iter()
        .map(|finding| finding.code.as_str())
        .collect()
}

fn agent(id: &str) -> Value {
    json!({"nodeId": id, "nodeKind": "agent.sub", "agentId": "a"})
}

fn edge(source: &str, target: &str) -> Value {
    json!({"source": source, "target": target})
}

fn data(source: &str, from: &str, target: &str, to: &str) -> Value {
    json!({"source": source, "sourceHandle": from, "target": target, "targetHandle": to, "dataEdge": true})
}

#[test]
fn two_data_sources_of_one_input_are_an_error() {
    let nodes = json!([agent("x"), agent("y"), agent("z")]);
    let edges = json!([
        edge("x", "y"),
        edge("y", "z"),
        data("x", "result", "z", "data"),
        data("y", "result", "z", "data"),
    ]);
    let errors = check(flow(nodes, edges)).errors;
    assert_eq!(codes(&errors), ["multiple_data_sources"]);
    let error = &errors[0];
    assert_eq!(
        (error.edge_index, error.node_id.as_deref()),
        (Some(3), Some("z"))
    );
    assert_eq!(
        (error.handle.as_deref(), error.path.as_deref()),
        (Some("data"), Some("/graph/edges/3"))
    );
}

#[test]
fn invalid_settings_name_node_and_field() {
    let nodes = json!([
        {"nodeId": "p", "nodeKind": "control.plan-loop", "config": {"maxIterations": 0, "completionThreshold": 1.5}},
        {"nodeId": "x", "nodeKind": "agent.sub", "agentId": "a", "config": {
            "retry": {"maxAttempts": "3"}, "onError": "ignore", "join": "some", "temperature": 3,
            "turnMode": "loud", "model": null,
        }},
        {"nodeId": "s", "nodeKind": "control.subflow", "config": {}},
        {"nodeId": "h", "nodeKind": "control.human", "config": {"options": ["a", "a", "response"]}},
        {"nodeId": "l", "nodeKind": "control.loop", "config": {"condition": "1 +"}},
        {"nodeId": "u", "nodeKind": "loader.http-auth", "config": {"url": "file:///etc/passwd"}},
        {"nodeId": "d", "nodeKind": "loader.local-dir", "config": {"directory": "/etc"}},
        {"nodeId": "f", "nodeKind": "input.prompt", "config": {"promptFile": "a/../../b"}},
        {"nodeId": "b", "nodeKind": "agent.sub", "agentId": "a", "config": {"onError": "branch"}},
        {"nodeId": "z", "nodeKind": "control.finish", "config": {"outputFormat": "xml"}},
    ]);
    let edges = json!([
        {"source": "p", "target": "x", "sourceHandle": "execute"},
        {"source": "p", "target": "z", "sourceHandle": "done"},
    ]);
    let errors = check(flow(nodes, edges)).errors;
    let places: Vec<_> = errors
        .iter()
        .map(|e| {
            (
                e.code.as_str(),
                e.node_id.as_deref().unwrap(),
                e.field.as_deref().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        places,
        [
            ("invalid_config", "p", "maxIterations"),
            ("invalid_config", "p", "completionThreshold"),
            ("invalid_config", "x", "temperature"),
            ("invalid_config", "x", "join"),
            ("invalid_config", "x", "retry.maxAttempts"),
            ("invalid_config", "x", "onError"),
            ("invalid_turn_mode", "x", "turnMode"),
            ("invalid_config", "s", "flowId"),
            ("invalid_config", "h", "options"),
            ("invalid_config", "h", "options"),
            ("invalid_condition", "l", "condition"),
            ("invalid_config", "u", "url"),
            ("invalid_config", "d", "directory"),
            ("invalid_config", "f", "promptFile"),
            ("invalid_config", "b", "onError"),
            ("invalid_config", "z", "outputFormat"),
        ]
    );
    assert_eq!(
        errors[4].path.as_deref(),
        Some("/graph/nodes/1/config/retry/maxAttempts")
    );
}

#[test]
fn plan_loop_needs_execute_and_done() {
    let nodes = json!([{"nodeId": "p", "nodeKind": "control.plan-loop"}, agent("x")]);
    let errors = check(flow(nodes.clone(), json!([edge("x", "p")]))).errors;
    assert_eq!(
        codes(&errors),
        ["missing_handle_edge", "missing_handle_edge"]
    );
    assert_eq!(errors[1].handle.as_deref(), Some("done"));
    assert!(check(flow(nodes, json!([edge("p", "x"), edge("x", "p")]))).valid);
}

#[test]
fn invalid_conditions_name_the_edge() {
    let mut bad = edge("x", "y");
    bad["condition"] = json!("input. == 1");
    let errors = check(flow(json!([agent("x"), agent("y")]), json!([bad]))).errors;
    assert_eq!(codes(&errors), ["invalid_condition"]);
    assert_eq!(errors[0].path.as_deref(), Some("/graph/edges/0/condition"));
    let mut blank = edge("x", "y");
    blank["condition"] = json!(" ");
    assert!(check(flow(json!([agent("x"), agent("y")]), json!([blank]))).valid);
}

#[test]
fn unknown_kinds_are_warnings_if_not_strict() {
    let value = flow(
        json!([{"nodeId": "u", "nodeKind": "custom.mystery"}, agent("x")]),
        json!([
            {"source": "u", "target": "x", "sourceHandle": "anything"},
        ]),
    );
    assert_eq!(codes(&check(value.clone()).errors), ["unknown_node_kind"]);
    let lenient = Options {
        strict: false,
        ..Options::default()
    };
    let validation = check_with(value, &lenient);
    assert!(validation.valid);
    assert_eq!(codes(&validation.warnings), ["unknown_node_kind"]);
}

#[test]
fn graph_warnings_name_their_nodes() {
    let nodes = json!([
        agent("s"),
        agent("x"),
        agent("y"),
        agent("orphan"),
        {"nodeId": "t", "nodeKind": "agent.sub", "agentId": "a", "inputPorts": [
            {"portId": "in", "dataType": "flow"},
            {"portId": "text", "dataType": "string"},
            {"portId": "style", "dataType": "string", "defaultValue": "short"},
        ]},
    ]);
    let edges = json!([
        edge("s", "x"), edge("x", "y"), edge("y", "x"), edge("y", "t"),
        {"source": "s", "target": "t", "sourceHandle": "result", "dataEdge": true},
    ]);
    let validation = check(flow(nodes, edges));
    assert!(validation.valid, "{:?}", validation.errors);
    let found: Vec<_> = validation
        .warnings
        .iter()
        .map(|w| {
            (
                w.code.as_str(),
                w.node_id.as_deref(),
                w.edge_index,
                w.handle.as_deref(),
            )
        })
        .collect();
    assert_eq!(
        found,
        [
            ("data_edge_incomplete", None, Some(4), None),
            ("unreachable_node", Some("orphan"), None, None),
            (
                "required_input_disconnected",
                Some("orphan"),
                None,
                Some("in")
            ),
            ("required_input_disconnected", Some("t"), None, Some("text")),
            ("cycle_without_limit", Some("x"), None, None),
        ]
    );
}

#[test]
fn cycles_through_loop_nodes_are_limited() {
    let nodes = json!([{"nodeId": "l", "nodeKind": "control.loop"}, agent("x"), agent("y")]);
    let edges = json!([
        {"source": "l", "target": "x", "sourceHandle": "loop"}, edge("x", "l"),
        {"source": "l", "target": "y", "sourceHandle": "done"},
    ]);
    assert_eq!(check(flow(nodes, edges)).warnings, []);
}

#[test]
fn cycles_through_human_nodes_need_no_limit() {
    let nodes = json!([agent("x"), {"nodeId": "h", "nodeKind": "control.human"}, agent("y")]);
    let edges = json!([edge("x", "h"), edge("h", "x"), edge("h", "y")]);
    assert_eq!(check(flow(nodes, edges)).warnings, []);
}

#[test]
fn error_handle_is_implicit_on_every_node() {
    let nodes = json!([agent("x"), agent("y"), agent("z")]);
    let edges = json!([
        edge("x", "y"),
        {"source": "x", "target": "z", "sourceHandle": "error"},
        data("x", "error", "z", "data"),
        data("x", "error", "y", "prompt"),
    ]);
    let validation = check(flow(nodes, edges));
    assert_eq!(
        codes(&validation.errors),
        ["port_type_mismatch"],
        "an error is no prompt"
    );
    assert_eq!(codes(&validation.warnings), Vec::<&str>::new());
}

#[test]
fn data_edges_carry_control_if_nothing_else_does() {
    let nodes = json!([agent("x"), agent("y")]);
    let validation = check(flow(nodes, json!([data("x", "result", "y", "data")])));
    assert_eq!(codes(&validation.warnings), ["implicit_control_edge"]);
}

#[test]
fn secrets_are_found_and_not_shown() {
    let secret = "sk-abcdefghijklmnopqrstuvwxyz";
    let mut value = flow(json!([agent("x")]), json!([]));
    value["agents"]["agentDefs"][0]["adapterConfig"] = json!({
        "apiKey": "canary-1", "baseUrl": "https://user:canary-2@host/x", "maxTokens": 5,
        "other": {"apiKey": {"secret": "name"}, "authToken": "${TOKEN}", "token": ""},
        "deep": {"apiKeys": ["canary-5", "$KEY"], "credentials": {"user": "canary-6"}},
    });
    value["runtime"] =
        json!({"adapterConfig": {"fake": {"headers": {"Authorization": "Bearer canary-3"}}}});
    value["graph"]["nodes"][0]["config"] = json!({"userPrompt": format!("use {secret}, please")});
    let validation = check(value);
    let places: Vec<_> = validation
        .warnings
        .iter()
        .filter_map(|w| w.path.as_deref())
        .collect();
    assert_eq!(
        places,
        [
            "/agents/agentDefs/0/adapterConfig/apiKey",
            "/agents/agentDefs/0/adapterConfig/baseUrl",
            "/agents/agentDefs/0/adapterConfig/deep/apiKeys/0",
            "/agents/agentDefs/0/adapterConfig/deep/credentials/user",
            "/graph/nodes/0/config/userPrompt",
            "/runtime/adapterConfig/fake/headers/Authorization",
        ]
    );
    assert!(
        validation
            .warnings
            .iter()
            .all(|w| w.code.as_str() == "secret_in_flow")
    );
    let shown = serde_json::to_string(&validation).unwrap();
    assert!(
        !shown.contains("canary") && !shown.contains(secret),
        "{shown}"
    );
    assert_eq!(validation.warnings[0].agent_id.as_deref(), Some("a"));
}

#[test]
fn unknown_fields_are_reported_on_request() {
    let mut value = flow(json!([agent("x")]), json!([]));
    value["graph"]["nodes"][0]["agentid"] = json!("a");
    value["graph"]["nodes"][0]["config"] =
        json!({"useprompt": "x", "retry": {"max": 1}, "join": "any"});
    assert_eq!(check(value.clone()).warnings, []);
    let options = Options {
        unknown_fields: true,
        ..Options::default()
    };
    let warnings = check_with(value, &options).warnings;
    let mut places: Vec<_> = warnings.iter().filter_map(|w| w.path.as_deref()).collect();
    places.sort_unstable();
    assert_eq!(
        places,
        [
            "/graph/nodes/0/agentid",
            "/graph/nodes/0/config/retry/max",
            "/graph/nodes/0/config/useprompt",
        ]
    );
}

#[test]
fn relative_prompt_files_need_a_project() {
    let value = flow(
        json!([{"nodeId": "f", "nodeKind": "input.prompt", "config": {"promptFile": "p.md"}}]),
        json!([]),
    );
    assert_eq!(codes(&check(value.clone()).errors), ["invalid_config"]);
    let project = MemoryAssets::new([("p.md", "TEXT")]);
    let options = Options {
        project: Some(&project),
        ..Options::default()
    };
    assert!(check_with(value, &options).valid);
}
