//! Tests of drawings.

use serde_json::json;

use super::{FlowGraph, graph, mermaid};
use crate::assets::PromptAssetManifest;
use crate::binding::AdapterList;
use crate::compile::compile;
use crate::schema::Document;
use crate::validate::Options;

fn drawing() -> FlowGraph {
    let document = Document::from_value(json!({
        "meta": {"schemaVersion": "2.0", "name": "case"},
        "agents": {"agentDefs": [{"agentId": "a", "adapterKind": "fake"}]},
        "graph": {
            "startNodeId": "x y",
            "nodes": [
                {"nodeId": "x y", "agentId": "a", "label": "say \"hi\" <b>&#\n"},
                {"nodeId": "r", "nodeKind": "router.generic"},
                {"nodeId": "s", "nodeKind": "control.subflow", "config": {"flowId": "inner"}},
                {"nodeId": "end", "nodeKind": "control.finish"},
            ],
            "edges": [
                {"source": "x y", "sourceHandle": "result", "target": "end", "targetHandle": "result", "dataEdge": true},
                {"source": "x y", "target": "r", "sourceHandle": "out"},
                {"source": "r", "target": "s", "condition": "input.n > 1"},
                {"source": "r", "target": "end"},
                {"source": "x y", "target": "end", "sourceHandle": "error"},
                {"source": "s", "sourceHandle": "result", "target": "end", "targetHandle": "in", "dataEdge": true},
            ],
        },
    }))
    .unwrap();
    let adapters = AdapterList::new(["fake"]);
    let manifest = PromptAssetManifest::default();
    graph(
        &compile(&document, &manifest, &adapters, &Options::default())
            .unwrap()
            .flow,
    )
}

#[test]
fn graph_states_nodes_and_roles_of_edges() {
    let graph = drawing();
    assert_eq!(
        (graph.start.as_str(), graph.ends.as_slice()),
        ("x y", ["end".to_owned()].as_slice())
    );
    assert_eq!(graph.nodes[0].agent_id.as_deref(), Some("a"));
    assert_eq!(graph.nodes[2].flow_id.as_deref(), Some("inner"));
    let roles: Vec<_> = graph
        .edges
        .iter()
        .map(|e| (e.label.as_deref(), e.control, e.conditional, e.data))
        .collect();
    assert_eq!(
        roles,
        [
            (Some("result"), false, false, true),
            (None, true, false, false),
            (Some("input.n > 1"), true, true, false),
            (None, true, true, false),
            (Some("error"), true, true, false),
            (Some("result"), true, false, true),
        ]
    );
}

#[test]
fn mermaid_escapes_labels_and_dots_conditional_edges() {
    let expected = "flowchart TD
    start((start))
    n0[\"say #quot;hi#quot; #lt;b#gt;#amp;#35; \"]
    n1{\"r\"}
    n2[[\"s\"]]
    n3([\"end\"])
    start --> n0
    n0 -- \"result\" --- n3
    n0 --> n1
    n1 -. \"input.n #gt; 1\" .-> n2
    n1 -.-> n3
    n0 -. \"error\" .-> n3
    n2 -- \"result\" --> n3
";
    assert_eq!(mermaid(&drawing()), expected);
}
