//! Mermaid text of a graph.

use std::collections::HashMap;
use std::fmt::Write;

use super::graph::{FlowGraph, GraphNode};

/// Maximum characters of a label.
const MAX_LABEL: usize = 80;

/// Returns the Mermaid flowchart of a graph. Conditional edges have dotted arrows, edges that carry
/// only a value have no arrow head.
///
/// ```
/// # use deerflow_flow::{assets::PromptAssetManifest, binding::AdapterList, validate::Options};
/// # use deerflow_flow::{compile::compile_text, drawing::{graph, mermaid}};
/// let text = "meta: {schemaVersion: '2.0', name: hello}
/// agents: {agentDefs: [{agentId: a, adapterKind: fake}]}
/// graph:
///   startNodeId: greet
///   nodes: [{nodeId: greet, agentId: a}, {nodeId: end, nodeKind: control.finish}]
///   edges: [{source: greet, target: end, condition: len(last.text) > 0}]
/// ";
/// # let adapters = AdapterList::new(["fake"]);
/// let manifest = PromptAssetManifest::default();
/// let compiled = compile_text(text, &manifest, &adapters, &Options::default()).unwrap();
/// let drawing = mermaid(&graph(&compiled.flow));
/// assert!(drawing.contains("n0 -. \"len(last.text) #gt; 0\" .-> n1"));
/// ```
pub fn mermaid(graph: &FlowGraph) -> String {
    let mut text = String::from("flowchart TD\n    start((start))\n");
    let mut names = HashMap::new();
    for (index, node) in graph.nodes.iter().enumerate() {
        names.insert(node.id.as_str(), format!("n{index}"));
        let (open, close) = brackets(node);
        let label = escaped(&node.label);
        // Writing to a string never fails.
        let _ = writeln!(text, "    n{index}{open}\"{label}\"{close}");
    }
    let name = |id: &str| names.get(id).map_or("start", String::as_str);
    let _ = writeln!(text, "    start --> {}", name(&graph.start));
    for edge in &graph.edges {
        let arrow = match (&edge.label, edge.control, edge.conditional) {
            (Some(label), true, true) => format!("-. \"{}\" .->", escaped(label)),
            (None, true, true) => "-.->".to_owned(),
            (Some(label), true, false) => format!("-- \"{}\" -->", escaped(label)),
            (None, true, false) => "-->".to_owned(),
            (Some(label), false, _) => format!("-- \"{}\" ---", escaped(label)),
            (None, false, _) => "---".to_owned(),
        };
        let _ = writeln!(
            text,
            "    {} {arrow} {}",
            name(&edge.source),
            name(&edge.target)
        );
    }
    text
}

/// Returns the shape of a node by the family of its kind.
fn brackets(node: &GraphNode) -> (&'static str, &'static str) {
    let (family, variant) = node.kind.split_once('.').unwrap_or((&node.kind, ""));
    match (family, variant) {
        ("router", _) | ("control", "condition" | "loop" | "plan-loop") => ("{", "}"),
        ("control", "subflow") => ("[[", "]]"),
        ("control", "finish" | "output") => ("([", "])"),
        ("control", "human") => ("{{", "}}"),
        ("loader" | "input", _) => ("[/", "/]"),
        _ => ("[", "]"),
    }
}

/// Writes what has a meaning in Mermaid or HTML as entities, on one line.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for (count, c) in text.chars().enumerate() {
        if count == MAX_LABEL {
            escaped.push('…');
            break;
        }
        match c {
            '"' => escaped.push_str("#quot;"),
            '#' => escaped.push_str("#35;"),
            '<' => escaped.push_str("#lt;"),
            '>' => escaped.push_str("#gt;"),
            '&' => escaped.push_str("#amp;"),
            '`' => escaped.push_str("#96;"),
            '\\' => escaped.push_str("#92;"),
            c if c.is_control() => escaped.push(' '),
            c => escaped.push(c),
        }
    }
    escaped
}
