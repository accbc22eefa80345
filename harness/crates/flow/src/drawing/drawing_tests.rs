//! Tests of drawings.

use serde_json::json;

use super::*;
use crate::schema::Document;

fn drawing(nodes: serde_json::Value, edges: serde_json::Value) -> Drawing {
    let document = Document::from_value(json!({
        "meta": {"schemaVersion": "2.0", "name": "f"},
        "agents": {"agentDefs": []},
        "graph": {"startNodeId": "a", "nodes": nodes, "edges": edges},
    }));
    Drawing::of(&document.unwrap().flow)
}

#[test]
fn drawing_has_start_end_kinds_and_conditional_edges() {
    let drawing = drawing(
        json!([
            {"nodeId": "a", "nodeKind": "agent.main", "label": "Ask", "agentId": "x", "agentRef": "y"},
            {"nodeId": "f", "nodeKind": "control.finish"},
        ]),
        json!([
            {"source": "a", "target": "f", "condition": "last.text == 'x'"},
            {"source": "a", "target": "f", "sourceHandle": "out", "targetHandle": "result", "dataEdge": true},
        ]),
    );
    assert_eq!(
        json!(drawing),
        json!({
            "nodes": [
                {"id": "__start__"},
                {"id": "a", "type": "runnable", "data": {"name": "Ask", "kind": "agent.main", "agentId": "y"}},
                {"id": "f", "type": "runnable", "data": {"name": "f", "kind": "control.finish"}},
                {"id": "__end__"},
            ],
            "edges": [
                {"source": "__start__", "target": "a"},
                {"source": "a", "target": "f", "conditional": true, "data": "last.text == 'x'"},
                {"source": "a", "target": "f", "data": "out"},
                {"source": "f", "target": "__end__"},
            ],
        })
    );
}

#[test]
fn mermaid_dots_conditional_edges_and_escapes_labels() {
    let drawing = drawing(
        json!([
            {"nodeId": "a", "nodeKind": "control.condition", "label": "say \"hi\"\n# now"},
            {"nodeId": "b c", "nodeKind": "agent.main"},
        ]),
        json!([
            {"source": "a", "target": "b c", "condition": "last.text == 'x' || true"},
            {"source": "a", "target": "b c", "sourceHandle": "out", "targetHandle": "data", "dataEdge": true},
            {"source": "b c", "target": "a"},
        ]),
    );
    assert_eq!(
        drawing.mermaid(),
        "flowchart TD
    n0([\"__start__\"])
    n1[\"say #34;hi#34; #35; now (a)\"]
    n2[\"b c\"]
    n3([\"__end__\"])
    n0 --> n1
    n1 -.->|\"last.text == 'x' #124;#124; true\"| n2
    n1 ==>|\"out\"| n2
    n2 --> n1
"
    );
}
