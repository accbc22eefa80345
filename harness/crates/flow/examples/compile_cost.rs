//! Prints the time of reading, validating and compiling a flow of 500 nodes and 2,000 edges:
//! `cargo run --release -p deerflow-flow --example compile_cost`.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use deerflow_flow::assets::PromptAssetManifest;
use deerflow_flow::binding::AdapterList;
use deerflow_flow::compile::compile;
use deerflow_flow::schema::{Document, MAX_EDGES, MAX_NODES};
use deerflow_flow::validate::Options;
use serde_json::{Value, json};

const ROUNDS: u32 = 20;

fn main() -> io::Result<()> {
    let value = largest_flow();
    let json = value.to_string();
    let document = Document::from_value(value).map_err(refused)?;
    let yaml = document.flow.to_yaml().map_err(io::Error::other)?;
    let mut out = io::stdout();
    for (name, text) in [("json", &json), ("yaml", &yaml)] {
        let (read, compiled) = measure(text)?;
        writeln!(
            out,
            "{name}: {} KiB, read {:.1} ms, validate and compile {:.1} ms, together {:.1} ms",
            text.len() / 1024,
            millis(read),
            millis(compiled),
            millis(read + compiled),
        )?;
    }
    Ok(())
}

/// Returns the fastest times of reading and of compiling.
fn measure(text: &str) -> io::Result<(Duration, Duration)> {
    let manifest = PromptAssetManifest::default();
    let adapters = AdapterList::new(["fake"]);
    let mut best = (Duration::MAX, Duration::MAX);
    for _ in 0..ROUNDS {
        let start = Instant::now();
        let document = Document::read(text).map_err(refused)?;
        let read = start.elapsed();
        let start = Instant::now();
        let compiled = compile(&document, &manifest, &adapters, &Options::default());
        let elapsed = start.elapsed();
        compiled.map_err(refused)?;
        best = (best.0.min(read), best.1.min(elapsed));
    }
    Ok(best)
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}

fn refused(validation: deerflow_flow::finding::Validation) -> io::Error {
    io::Error::other(format!("{:?}", validation.errors.first()))
}

/// Returns a flow of the maximum size. Each node has four edges with conditions to later nodes.
fn largest_flow() -> Value {
    let per_node = MAX_EDGES / MAX_NODES;
    let nodes: Vec<Value> = (0..MAX_NODES)
        .map(|n| {
            json!({
                "nodeId": format!("node-{n}"), "nodeKind": "agent.sub", "agentId": "a",
                "label": format!("Node {n}"),
                "config": {"userPrompt": "Do a part of the work.", "retry": {"maxAttempts": 2}},
            })
        })
        .collect();
    let edges: Vec<Value> = (0..MAX_EDGES)
        .map(|e| {
            let source = e / per_node;
            let target = (source + 1 + e % per_node) % MAX_NODES;
            json!({
                "source": format!("node-{source}"), "target": format!("node-{target}"),
                "condition": format!("len(nodes.node-{source}.result) > {} && last.text != 'x'", e % 7),
            })
        })
        .collect();
    json!({
        "meta": {"schemaVersion": "2.0", "name": "largest"},
        "agents": {"agentDefs": [{"agentId": "a", "adapterKind": "fake"}]},
        "graph": {"startNodeId": "node-0", "nodes": nodes, "edges": edges},
    })
}
