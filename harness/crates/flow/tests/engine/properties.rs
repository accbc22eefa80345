//! Properties of random graphs.

use std::collections::HashMap;

use deerflow_flow::driver::{FlowOptions, FlowOutcome};
use deerflow_flow::machine::{RunBounds, RunInput};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::fixture::{
    Fixture, agent, agent_with, data, document, edge, handle, node, try_compiled,
};
use crate::takeover::Takeover;

const KINDS: usize = 9;
/// Kind whose runs stop at a question.
const HUMAN: usize = 8;

/// Documents of flows; most are valid. `kinds` is the number of node kinds that they use.
fn graph(kinds: usize) -> impl Strategy<Value = Value> {
    let kinds = prop::collection::vec(0..kinds, 1..9);
    let edges = prop::collection::vec((0usize..9, 0usize..9, 0usize..5), 0..20);
    let concurrency = 1u32..4;
    (kinds, edges, concurrency).prop_map(|(kinds, edges, concurrency)| {
        let count = kinds.len();
        let nodes: Vec<Value> = kinds
            .iter()
            .enumerate()
            .map(|(index, kind)| any_node(index, *kind))
            .collect();
        let mut seen = std::collections::HashSet::new();
        let edges: Vec<Value> = edges
            .into_iter()
            .map(|(source, target, variant)| (source % count, target % count, variant))
            .filter(|(source, target, _)| source != target)
            .filter(|(source, target, _)| seen.insert((*source, *target)))
            .map(|(source, target, variant)| any_edge(source, target, kinds[source], variant))
            .collect();
        let mut edges = edges;
        add_loop_edges(&kinds, &mut edges);
        let mut document = document(&nodes, &edges);
        document["runtime"] = json!({"maxConcurrency": concurrency});
        document
    })
}

/// Adds the edges without which a loop is not valid.
fn add_loop_edges(kinds: &[usize], edges: &mut Vec<Value>) {
    for (index, kind) in kinds.iter().enumerate() {
        let id = format!("n{index}");
        let needed: &[&str] = match kind {
            4 => &["execute", "done"],
            5 => &["loop", "done"],
            _ => &[],
        };
        for (offset, name) in needed.iter().enumerate() {
            let target = (index + 1 + offset) % kinds.len();
            let has_handle = edges
                .iter()
                .any(|edge| edge["source"] == id && edge["sourceHandle"] == *name);
            if !has_handle && target != index {
                edges.push(handle(&id, name, &format!("n{target}")));
            }
        }
    }
}

fn any_node(index: usize, kind: usize) -> Value {
    let id = format!("n{index}");
    match kind {
        0 => agent(&id),
        1 => agent_with(&id, json!({"turnMode": "evaluate"})),
        2 => node(&id, "control.condition", json!({})),
        3 => node(&id, "control.join", json!({})),
        4 => node(&id, "control.plan-loop", json!({"maxIterations": 2})),
        5 => node(&id, "control.loop", json!({"maxIterations": 2})),
        6 => node(&id, "control.finish", json!({})),
        HUMAN => node(&id, "control.human", json!({"options": ["yes", "no"]})),
        _ => agent_with(&id, json!({"onError": "branch", "join": "all"})),
    }
}

fn any_edge(source: usize, target: usize, kind: usize, variant: usize) -> Value {
    let (from, to) = (format!("n{source}"), format!("n{target}"));
    match (kind, variant) {
        (4, variant) => handle(
            &from,
            ["plan", "execute", "evaluate", "done"][variant % 4],
            &to,
        ),
        (5, variant) => handle(&from, ["loop", "done"][variant % 2], &to),
        (_, 0) => {
            let mut edge = edge(&from, &to);
            edge["condition"] = json!("len(last.text) > 3");
            edge
        }
        (0 | 1 | 7, 4) => data(&from, "result", &to, "data"),
        (HUMAN, 1 | 2) => handle(&from, ["yes", "no"][variant - 1], &to),
        _ => edge(&from, &to),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn random_graphs_end_with_the_same_trace_twice(document in graph(HUMAN)) {
        prop_assume!(try_compiled(&document).is_ok());
        let run = || {
            let mut fixture = Fixture::of(&document, json!({}));
            fixture.options.bounds.recursion_limit = 40;
            let end = fixture.run();
            prop_assert!(fixture.steps().len() <= 41);
            let code = match &end.outcome {
                FlowOutcome::Finished(_) => String::new(),
                FlowOutcome::Failed(error) => error.code.clone(),
                other => format!("{other:?}"),
            };
            prop_assert!(["", "recursion_limit", "no_route"].contains(&code.as_str()), "{}", code);
            Ok((code, fixture.lines(), end.data.result()))
        };
        prop_assert_eq!(run()?, run()?);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn random_graphs_reach_the_same_end_from_every_checkpoint(document in graph(KINDS)) {
        let compiled = try_compiled(&document);
        prop_assume!(compiled.is_ok());
        let bounds = RunBounds {
            recursion_limit: 40,
            ..RunBounds::default()
        };
        let takeover = Takeover {
            flow: compiled.unwrap(),
            script: HashMap::new(),
            kinds: vec!["fake".to_owned()],
            options: FlowOptions { bounds, ..FlowOptions::new("run") },
            subflows: HashMap::new(),
            input: RunInput::prompt("T"),
            answers: Vec::new(),
        };
        let checked = takeover.check();
        prop_assert!(checked.is_ok(), "{:?}", checked);
    }
}
