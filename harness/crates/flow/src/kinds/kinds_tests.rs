//! Tests of node kinds.

use serde_json::{Value, json};

use super::{KindDriver, NodeKinds, effective_kind, migrate, node_kinds};
use crate::schema::{Document, Flow};

fn flow(version: &str, nodes: Value) -> Flow {
    let value = json!({
        "meta": {"schemaVersion": version, "name": "case"},
        "agents": {"agentDefs": []},
        "graph": {"nodes": nodes, "edges": [], "startNodeId": "a"},
        "extensions": {"customNodeSpecs": [{
            "kind": "agent.review", "label": "l", "category": "c", "description": "d", "icon": "i",
            "outputPorts": [{"portId": "judge", "dataType": "object"}],
        }]},
    });
    Document::from_value(value).unwrap().flow
}

fn ids(flow: &Flow, node: usize) -> (Vec<String>, Vec<String>) {
    let kinds = NodeKinds::of(flow);
    let node = &flow.graph.nodes[node];
    let ids = |ports: super::Ports<'_>| ports.list.iter().map(|p| p.port_id.clone()).collect();
    (ids(kinds.inputs(node)), ids(kinds.outputs(node)))
}

#[test]
fn node_types_of_format_1_become_kinds() {
    let types = ["agent", "router", "input", "output", "loop", "parallel"];
    let nodes: Vec<Value> = types
        .iter()
        .map(|name| json!({"nodeId": name, "nodeType": name}))
        .chain([
            json!({"nodeId": "none"}),
            json!({"nodeId": "k", "nodeKind": "agent.sub", "nodeType": "loop"}),
        ])
        .collect();
    let migrated = migrate(flow("1.0", json!(nodes)));
    let kinds: Vec<_> = migrated
        .graph
        .nodes
        .iter()
        .filter_map(|n| n.node_kind.clone())
        .collect();
    assert_eq!(
        kinds,
        [
            "agent.generic",
            "router.generic",
            "loader.input",
            "control.output",
            "control.loop",
            "control.parallel",
            "agent.generic",
            "agent.sub",
        ]
    );
    assert_eq!(migrated.meta.schema_version, "2.0");
    assert_eq!(migrated.graph.nodes[3].category.as_deref(), Some("Control"));
    assert_eq!(migrated.graph.nodes[0].output_ports.len(), 4);
}

#[test]
fn migration_adds_no_ports_if_one_side_has_some() {
    let nodes = json!([{"nodeId": "a", "inputPorts": [{"portId": "p", "dataType": "any"}]}]);
    let node = &migrate(flow("1.0", nodes)).graph.nodes[0];
    assert_eq!((node.input_ports.len(), node.output_ports.len()), (1, 0));
}

#[test]
fn documents_of_format_2_are_not_migrated() {
    let before = flow("2.0", json!([{"nodeId": "a", "nodeType": "output"}]));
    assert_eq!(migrate(before.clone()), before);
    assert_eq!(effective_kind(&before.graph.nodes[0]), "control.output");
}

#[test]
fn ports_are_of_the_node_else_custom_else_built_in() {
    let flow = flow(
        "2.0",
        json!([
            {"nodeId": "a", "nodeKind": "agent.review"},
            {"nodeId": "b", "nodeKind": "agent.review", "outputPorts": [{"portId": "x", "dataType": "any"}]},
            {"nodeId": "c", "nodeKind": "control.human", "config": {"options": ["yes", "no"]}},
            {"nodeId": "d", "nodeKind": "loader.s3"},
        ]),
    );
    assert_eq!(ids(&flow, 0), (vec![], vec!["judge".to_owned()]));
    assert_eq!(ids(&flow, 1).1, ["x"]);
    assert_eq!(ids(&flow, 2).1, ["out", "response", "yes", "no"]);
    assert_eq!(ids(&flow, 3).1, ["out", "data"]);
}

#[test]
fn router_edges_leave_by_any_handle() {
    let flow = flow(
        "2.0",
        json!([{"nodeId": "a", "nodeKind": "router.x"}, {"nodeId": "b", "nodeKind": "agent.x"}]),
    );
    let kinds = NodeKinds::of(&flow);
    assert!(kinds.outputs(&flow.graph.nodes[0]).accepts("anything"));
    assert!(!kinds.outputs(&flow.graph.nodes[1]).accepts("anything"));
}

#[test]
fn kinds_without_a_driver_are_unknown() {
    for kind in ["custom.x", "control.x", "agent", "agent.", "input.x", ""] {
        assert_eq!(KindDriver::of(kind), None, "{kind}");
    }
}

#[test]
fn list_has_built_in_and_custom_kinds_with_schemas() {
    let flow = flow("2.0", json!([{"nodeId": "a"}]));
    let kinds = node_kinds(Some(&flow));
    let find = |name: &str| kinds.iter().find(|k| k.kind == name).unwrap();
    assert!(find("agent.review").custom);
    assert_eq!(
        find("control.subflow").config_schema["required"],
        json!(["flowId"])
    );
    let retry = &find("agent.sub").config_schema["$defs"]["Retry"]["properties"];
    assert_eq!(retry["maxAttempts"]["minimum"], 1);
    assert_eq!(node_kinds(None).len(), 17);
}
