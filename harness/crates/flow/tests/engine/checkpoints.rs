//! A saved run reaches the same end from every superstep.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use deerflow_flow::adapter::AdapterRegistry;
use deerflow_flow::adapters::fake::{FakeCall, FakeFactory, ScriptedTurn};
use deerflow_flow::driver::{
    FlowEnd, FlowOptions, FlowOutcome, FlowPorts, FlowStart, Progress, RunHooks, run_flow,
};
use deerflow_flow::machine::{FlowMachine, RunData, RunInput};
use serde_json::{Map, Value, json};

use crate::support;

/// Saves the state after each superstep and each early result, with the turns so far by node.
#[derive(Debug)]
struct Saver {
    fake: FakeFactory,
    saved: Mutex<Vec<Saved>>,
}

/// Machine, channels, and the number of turns by node.
type Saved = (Value, Map<String, Value>, HashMap<String, usize>);

impl Saver {
    fn save(&self, progress: &Progress<'_>) {
        let mut turns = HashMap::new();
        for call in self.fake.calls() {
            if let FakeCall::Turn(turn) = call {
                *turns.entry(turn.node_id).or_insert(0) += 1;
            }
        }
        let machine = serde_json::to_value(progress.machine).unwrap();
        let channels = progress.data.channels(progress.flow);
        self.saved.lock().unwrap().push((machine, channels, turns));
    }
}

#[async_trait]
impl RunHooks for Saver {
    fn superstep(&self, progress: Progress<'_>) {
        self.save(&progress);
    }

    fn amended(&self, progress: Progress<'_>) {
        self.save(&progress);
    }
}

fn ports(fake: &FakeFactory, kinds: &Value) -> FlowPorts {
    let mut registry = AdapterRegistry::default();
    let default = json!(["fake"]);
    let kinds = kinds
        .as_array()
        .unwrap_or_else(|| default.as_array().unwrap());
    for kind in kinds {
        registry
            .register(Arc::new(fake.under_kind(kind.as_str().unwrap())))
            .unwrap();
    }
    FlowPorts::new(registry)
}

fn summary(end: &FlowEnd) -> (String, Option<Value>) {
    let outcome = match &end.outcome {
        FlowOutcome::Failed(error) => error.code.clone(),
        other => format!("{other:?}"),
    };
    (outcome, end.data.result())
}

fn check(case: &Value) -> usize {
    let script = case["adapter"]["script"].clone();
    let script: HashMap<String, Vec<ScriptedTurn>> =
        serde_json::from_value(script).unwrap_or_default();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    let options = FlowOptions::new("run");
    let fake = FakeFactory::scripted("fake", script.clone());
    let adapters = ports(&fake, &case["adapters"]).registry;
    let (flow, _) =
        support::try_compile(&case["flow"], case.get("manifest"), &*adapters, true).unwrap();
    let saver = Arc::new(Saver {
        fake: fake.clone(),
        saved: Mutex::default(),
    });
    let saving = FlowPorts {
        hooks: saver.clone(),
        ..ports(&fake, &case["adapters"])
    };
    let input = RunInput::read(case["input"].clone()).unwrap();
    let expected = runtime.block_on(run_flow(&flow, FlowStart::Fresh(input), &options, &saving));
    let saved = std::mem::take(&mut *saver.saved.lock().unwrap());
    for (machine, channels, turns) in &saved {
        let mut rest = script.clone();
        for (node, count) in turns {
            let used = rest.entry(node.clone()).or_default();
            used.drain(..(*count).min(used.len()));
        }
        let fake = FakeFactory::scripted("fake", rest);
        let machine = FlowMachine::restore(&flow, options.bounds.clone(), machine.clone()).unwrap();
        let data = RunData::restore(&flow, channels).unwrap();
        assert_eq!(data.channels(&flow), *channels);
        let start = FlowStart::TakenOver(Box::new(machine), Box::new(data));
        let ports = ports(&fake, &case["adapters"]);
        let end = runtime.block_on(run_flow(&flow, start, &options, &ports));
        assert_eq!(summary(&end), summary(&expected), "{}", case["id"]);
    }
    saved.len()
}

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
        let is_plain = case["expect"].get("status").is_some()
            && case.get("actions").is_none()
            && case.get("options").is_none()
            && case.get("subflows").is_none();
        if is_plain {
            checkpoints += check(&case);
        }
    }
    assert!(checkpoints > 50, "{checkpoints}");
}
