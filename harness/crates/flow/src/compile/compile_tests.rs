//! Tests of compilation.

use std::sync::Arc;

use serde_json::{Value, json};

use super::compile;
use crate::adapter::TurnMode;
use crate::assets::{MemoryAssets, PromptAssetManifest};
use crate::binding::AdapterList;
use crate::compiled::{AgentNode, CompiledFlow, Driver, Join, MergeMode, OnError};
use crate::schema::{Document, OutputKind};
use crate::validate::Options;

fn build(nodes: Value, edges: Value) -> Arc<CompiledFlow> {
    build_with(
        nodes,
        edges,
        json!({}),
        &Options::default(),
        &PromptAssetManifest::default(),
    )
}

fn build_with(
    nodes: Value,
    edges: Value,
    runtime: Value,
    options: &Options<'_>,
    manifest: &PromptAssetManifest,
) -> Arc<CompiledFlow> {
    let document = Document::from_value(json!({
        "meta": {"schemaVersion": "2.0", "name": "case"},
        "agents": {"agentDefs": [
            {"agentId": "a", "adapterKind": "fake"},
            {"agentId": "b", "adapterKind": "fake", "timeouts": {"turnMs": 7}, "outputKind": "judge",
             "modelProfile": {"model": "m-agent", "temperature": 1, "maxTokens": 9}},
            {"agentId": "d", "adapterKind": "harness"},
        ]},
        "graph": {"startNodeId": nodes[0]["nodeId"], "nodes": nodes, "edges": edges},
        "runtime": runtime,
    }))
    .unwrap();
    let adapters = AdapterList::new(["fake", "deerflow"]);
    compile(&document, manifest, &adapters, options)
        .unwrap()
        .flow
}

fn node(id: &str, kind: &str, config: Value) -> Value {
    json!({"nodeId": id, "nodeKind": kind, "agentId": "a", "config": config})
}

fn edge(source: &str, target: &str, handle: &str) -> Value {
    json!({"source": source, "target": target, "sourceHandle": handle})
}

fn agent<'f>(flow: &'f CompiledFlow, id: &str) -> &'f AgentNode {
    match &flow.nodes[flow.find(id).unwrap()].driver {
        Driver::Agent(agent) => agent,
        other => panic!("{other:?}"),
    }
}

fn names(flow: &CompiledFlow, nodes: &[usize]) -> Vec<String> {
    nodes
        .iter()
        .map(|&node| flow.nodes[node].id.to_string())
        .collect()
}

#[test]
fn edges_are_split_by_their_roles() {
    let nodes = json!([
        node("x", "agent.sub", json!({})),
        node("y", "agent.sub", json!({})),
        node("z", "agent.sub", json!({}))
    ]);
    let flow = build(
        nodes,
        json!([
            {"source": "x", "sourceHandle": "result", "target": "y", "targetHandle": "data", "dataEdge": true},
            {"source": "x", "target": "y", "condition": "last.text == 'a'"},
            edge("x", "z", "error"),
            {"source": "y", "sourceHandle": "result", "target": "z", "targetHandle": "data", "dataEdge": true},
        ]),
    );
    let indices =
        |edges: &[crate::compiled::ControlEdge]| edges.iter().map(|e| e.index).collect::<Vec<_>>();
    assert_eq!(indices(&flow.control[0]), [1]);
    assert!(flow.control[0][0].condition.is_some());
    assert_eq!(indices(&flow.error_edges[0]), [2]);
    assert_eq!(
        indices(&flow.control[1]),
        [3],
        "the only edge carries control, too"
    );
    assert_eq!(flow.data[1][0].index, 0);
    assert_eq!(
        (flow.data[2][0].source, &*flow.data[2][0].target_port),
        (1, "data")
    );
    assert_eq!(flow.nodes[0].on_error, OnError::Branch);
    assert_eq!(flow.nodes[1].on_error, OnError::Fail);
}

#[test]
fn joins_have_the_defaults_of_their_kind() {
    let flow = build(
        json!([
            node("x", "agent.sub", json!({})),
            node("j", "control.join", json!({})),
            node("f", "control.finish", json!({})),
            node("k", "control.join", json!({"join": "any"})),
            node("o", "control.output", json!({"join": "all"})),
        ]),
        json!([]),
    );
    let joins: Vec<Join> = flow.nodes.iter().map(|node| node.join).collect();
    assert_eq!(
        joins,
        [Join::Any, Join::All, Join::Defer, Join::Any, Join::All]
    );
}

#[test]
fn predecessors_on_a_cycle_through_the_node_do_not_count() {
    let flow = build(
        json!([
            node("s", "agent.sub", json!({})),
            node("l", "control.loop", json!({})),
            node("w", "agent.sub", json!({})),
            node("e", "agent.sub", json!({})),
            node("j", "control.join", json!({})),
        ]),
        json!([
            {"source": "s", "target": "l"}, edge("l", "w", "loop"), {"source": "w", "target": "l"},
            edge("l", "j", "done"), {"source": "s", "target": "e"}, {"source": "e", "target": "j"},
            {"source": "e", "target": "j", "targetHandle": "in"},
        ]),
    );
    assert_eq!(names(&flow, &flow.predecessors[1]), ["s"]);
    assert_eq!(names(&flow, &flow.predecessors[2]), Vec::<String>::new());
    assert_eq!(names(&flow, &flow.predecessors[4]), ["l", "e"]);
}

#[test]
fn evaluators_lead_back_to_their_own_loop() {
    let judge = json!({"turnMode": "evaluate"});
    let flow = build(
        json!([
            node("pre", "agent.sub", judge.clone()),
            node(
                "outer",
                "control.plan-loop",
                json!({"evaluatePrompt": "OUTER"})
            ),
            node(
                "inner",
                "control.plan-loop",
                json!({"evaluatePrompt": "INNER", "maxIterations": 2})
            ),
            node("exec", "agent.sub", json!({})),
            node("inner-judge", "agent.sub", judge.clone()),
            node("outer-judge", "agent.sub", judge.clone()),
            node("next", "control.plan-loop", json!({})),
            node("work", "agent.sub", json!({})),
            node("next-judge", "agent.sub", judge),
            node("end", "control.finish", json!({})),
        ]),
        json!([
            {"source": "pre", "target": "outer"},
            edge("outer", "inner", "execute"), edge("outer", "next", "done"),
            edge("inner", "exec", "execute"), {"source": "exec", "target": "inner-judge"},
            {"source": "inner-judge", "target": "inner"},
            edge("inner", "outer-judge", "done"), {"source": "outer-judge", "target": "outer"},
            edge("next", "work", "execute"), edge("next", "next-judge", "evaluate"), edge("next", "end", "done"),
            {"source": "work", "target": "next"}, {"source": "next-judge", "target": "next"},
        ]),
    );
    let evaluators = |id: &str| match &flow.nodes[flow.find(id).unwrap()].driver {
        Driver::PlanLoop(plan_loop) => (
            names(&flow, &plan_loop.evaluators),
            plan_loop.has_plan,
            plan_loop.has_evaluate,
        ),
        other => panic!("{other:?}"),
    };
    assert_eq!(
        evaluators("outer"),
        (vec!["outer-judge".to_owned()], false, false)
    );
    assert_eq!(
        evaluators("inner"),
        (vec!["inner-judge".to_owned()], false, false)
    );
    assert_eq!(
        evaluators("next"),
        (vec!["next-judge".to_owned()], false, true)
    );
    assert_eq!(
        agent(&flow, "inner-judge").loop_evaluate_prompt.as_deref(),
        Some("INNER")
    );
    assert_eq!(
        agent(&flow, "outer-judge").loop_evaluate_prompt.as_deref(),
        Some("OUTER")
    );
    assert_eq!(agent(&flow, "pre").loop_evaluate_prompt, None);
}

#[test]
fn turn_limits_come_from_node_agent_flow_and_default() {
    let nodes = json!([
        {"nodeId": "w", "nodeKind": "agent.sub", "agentId": "b", "config": {"timeoutMs": 5}},
        {"nodeId": "x", "nodeKind": "agent.sub", "agentId": "b"},
        {"nodeId": "y", "nodeKind": "agent.sub", "agentId": "a"},
        {"nodeId": "z", "nodeKind": "agent.sub", "agentId": "d"},
    ]);
    let limits = |runtime: Value| {
        let flow = build_with(
            nodes.clone(),
            json!([]),
            runtime,
            &Options::default(),
            &PromptAssetManifest::default(),
        );
        ["w", "x", "y", "z"].map(|id| agent(&flow, id).turn_limit_ms)
    };
    assert_eq!(limits(json!({})), [Some(5), Some(7), Some(60_000), None]);
    assert_eq!(
        limits(json!({"defaultTurnTimeoutMs": 9})),
        [Some(5), Some(7), Some(9), Some(9)]
    );
}

#[test]
fn agent_settings_of_the_node_precede_those_of_the_agent() {
    let flow = build(
        json!([
            {"nodeId": "x", "nodeKind": "agent.sub", "agentId": "b", "config": {
                "model": "m-node", "temperature": 0.5, "maxTokens": 3.0, "budgets": {"maxSteps": 2},
                "retry": {"maxAttempts": 3, "jitter": false}, "onError": "continue", "defaultOutput": "n/a",
                "turnMode": "multi", "systemPrompt": " ",
            }},
            {"nodeId": "y", "nodeKind": "agent.sub", "agentId": "b"},
            {"nodeId": "p", "nodeKind": "agent.sub", "agentId": "a", "config": {"turnMode": "plan"}},
        ]),
        json!([]),
    );
    let x = agent(&flow, "x");
    assert_eq!(
        (x.model.as_deref(), x.temperature, x.max_tokens),
        (Some("m-node"), Some(0.5), Some(3))
    );
    assert_eq!(
        (x.budgets.max_steps, x.turn_mode, x.system_prompt.as_deref()),
        (Some(2), TurnMode::Normal, None)
    );
    assert_eq!(flow.nodes[0].on_error, OnError::Continue(json!("n/a")));
    assert_eq!(
        (
            flow.nodes[0].retry.max_attempts,
            flow.nodes[0].retry.initial_interval_ms
        ),
        (3, 500)
    );
    let y = agent(&flow, "y");
    assert_eq!(
        (y.model.as_deref(), y.temperature, y.output_kind),
        (Some("m-agent"), Some(1.0), OutputKind::Judge)
    );
    assert_eq!(agent(&flow, "p").output_kind, OutputKind::Plan);
}

#[test]
fn asset_states_the_turn_mode_of_its_nodes() {
    let manifest: PromptAssetManifest = serde_json::from_value(json!({"agents": {"e": {
        "name": "E", "description": "d", "outputKind": "score", "adapterKind": "fake", "turnMode": "evaluate",
    }}}))
    .unwrap();
    let nodes = json!([
        {"nodeId": "x", "nodeKind": "agent.sub", "agentRef": "e"},
        {"nodeId": "y", "nodeKind": "agent.sub", "agentRef": "e", "config": {"turnMode": "normal"}},
    ]);
    let flow = build_with(nodes, json!([]), json!({}), &Options::default(), &manifest);
    assert_eq!(agent(&flow, "x").turn_mode, TurnMode::Evaluate);
    assert_eq!(agent(&flow, "y").turn_mode, TurnMode::Normal);
}

#[test]
fn content_hash_covers_text_and_used_assets() {
    let manifest = |body: &str, other: &str| -> PromptAssetManifest {
        let asset = |body: &str| {
            json!({
                "name": "E", "description": "d", "outputKind": "text", "adapterKind": "fake", "body": body,
            })
        };
        serde_json::from_value(json!({"agents": {"e": asset(body), "unused": asset(other)}}))
            .unwrap()
    };
    let hash = |label: &str, manifest: &PromptAssetManifest| {
        let nodes =
            json!([{"nodeId": "x", "nodeKind": "agent.sub", "agentRef": "e", "label": label}]);
        build_with(nodes, json!([]), json!({}), &Options::default(), manifest)
            .content_hash
            .clone()
    };
    let base = hash("l", &manifest("1", "1"));
    assert_eq!(base.len(), 64);
    assert_eq!(base, hash("l", &manifest("1", "2")));
    assert_ne!(base, hash("l", &manifest("2", "1")));
    assert_ne!(base, hash("m", &manifest("1", "1")));
}

#[test]
fn prompt_file_of_the_project_is_read_at_compilation() {
    let project = MemoryAssets::new([("p.md", "FILE\n")]);
    let options = Options {
        project: Some(&project),
        ..Options::default()
    };
    let prompt = |config: Value| {
        let flow = build_with(
            json!([node("p", "input.prompt", config)]),
            json!([]),
            json!({}),
            &options,
            &PromptAssetManifest::default(),
        );
        match &flow.nodes[0].driver {
            Driver::Prompt(prompt) => (prompt.text.clone(), prompt.file.clone(), prompt.merge),
            other => panic!("{other:?}"),
        }
    };
    let both = json!({"promptText": "TEXT", "promptFile": "p.md"});
    assert_eq!(
        prompt(both),
        ("TEXT\n\nFILE".to_owned(), None, MergeMode::Append)
    );
    let thread = json!({"promptFile": "/mnt/user-data/uploads/p.md", "mergeMode": "replace"});
    let path = Some("/mnt/user-data/uploads/p.md".to_owned());
    assert_eq!(prompt(thread), (String::new(), path, MergeMode::Replace));
}

#[test]
fn missing_prompt_file_is_an_invalid_setting() {
    let project = MemoryAssets::default();
    let options = Options {
        project: Some(&project),
        ..Options::default()
    };
    let document = Document::from_value(json!({
        "meta": {"schemaVersion": "2.0", "name": "case"},
        "agents": {"agentDefs": []},
        "graph": {"startNodeId": "p", "nodes": [node("p", "input.prompt", json!({"promptFile": "p.md"}))], "edges": []},
    }))
    .unwrap();
    let adapters = AdapterList::new(["fake"]);
    let validation = compile(
        &document,
        &PromptAssetManifest::default(),
        &adapters,
        &options,
    )
    .unwrap_err();
    assert_eq!(validation.errors[0].code.as_str(), "invalid_config");
    assert_eq!(validation.errors[0].field.as_deref(), Some("promptFile"));
}
