//! A saved run reaches the same end from every superstep.

use deerflow_flow::adapter::AdapterRegistry;
use deerflow_flow::adapters::fake::FakeFactory;
use deerflow_flow::driver::FlowOptions;
use deerflow_flow::machine::{RunBounds, RunInput};
use deerflow_runtime::runs::NodeSelector;
use serde_json::{Value, json};

use crate::support;
use crate::takeover::Takeover;

fn takeover(case: &Value) -> Takeover {
    let kinds: Vec<String> = match case["adapters"].as_array() {
        Some(kinds) => kinds.iter().map(text).collect(),
        None => vec!["fake".to_owned()],
    };
    let mut registry = AdapterRegistry::default();
    for kind in &kinds {
        registry
            .register(std::sync::Arc::new(FakeFactory::plain(kind)))
            .unwrap();
    }
    let compile = |flow: &Value| {
        let strict = case["options"]["strict"].as_bool().unwrap_or(true);
        let compiled = support::try_compile(flow, case.get("manifest"), &registry, strict);
        compiled.unwrap().0
    };
    let subflows = case["subflows"].as_object().cloned().unwrap_or_default();
    Takeover {
        flow: compile(&case["flow"]),
        script: serde_json::from_value(case["adapter"]["script"].clone()).unwrap_or_default(),
        options: options(&case["options"]),
        subflows: subflows
            .iter()
            .map(|(id, flow)| (id.clone(), compile(flow)))
            .collect(),
        input: RunInput::read(case["input"].clone()).unwrap(),
        answers: case["resume"].as_array().cloned().unwrap_or_default(),
        kinds,
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

fn options(given: &Value) -> FlowOptions {
    let selector = |key: &str| match given[key].as_array() {
        Some(nodes) => NodeSelector::Named(nodes.iter().map(text).collect()),
        None => NodeSelector::None,
    };
    let number = |key: &str, default: u64| given[key].as_u64().unwrap_or(default);
    FlowOptions {
        bounds: RunBounds {
            recursion_limit: number("recursionLimit", 100),
            interrupt_before: selector("interruptBefore"),
            interrupt_after: selector("interruptAfter"),
            ..RunBounds::default()
        },
        max_subflow_depth: usize::try_from(number("maxSubflowDepth", 5)).unwrap(),
        ..FlowOptions::new("run")
    }
}

/// Cancelled runs are left out: nothing takes them over.
#[test]
fn every_checkpoint_of_every_case_reaches_the_same_end() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/flow_cases");
    let mut checkpoints = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let case: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        let runs = case["type"] == json!("flow") && case["expect"].get("status").is_some();
        if runs && case.get("actions").is_none() {
            let checked = takeover(&case).check();
            checkpoints += checked.unwrap_or_else(|problem| panic!("{}: {problem}", case["id"]));
        }
    }
    assert!(checkpoints > 80, "{checkpoints}");
}
