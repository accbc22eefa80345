//! Cases of type `flow`.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use async_trait::async_trait;
use deerflow_flow::adapter::{AdapterRegistry, AgentInvocation, FlowError};
use deerflow_flow::adapters::fake::{FakeCall, FakeFactory, ScriptedTurn};
use deerflow_flow::compiled::CompiledFlow;
use deerflow_flow::driver::{
    FlowEnd, FlowOptions, FlowOutcome, FlowPorts, FlowSource, FlowStart, run_flow,
};
use deerflow_flow::machine::{RunBounds, RunInput};
use deerflow_runtime::runs::NodeSelector;
use serde_json::{Value, json};

use super::matching::{compare, compare_text};
use super::recorder::Recorder;
use super::support;
use super::validation::compare_validation;

#[derive(Debug)]
struct Subflows(HashMap<String, Arc<CompiledFlow>>);

#[async_trait]
impl FlowSource for Subflows {
    async fn get(&self, flow_id: &str) -> Result<Option<Arc<CompiledFlow>>, FlowError> {
        Ok(self.0.get(flow_id).cloned())
    }
}

/// Returns the differences of a case.
pub(crate) fn run(case: &Value) -> Vec<String> {
    let mut differences = Vec::new();
    let expect = &case["expect"];
    let fake = FakeFactory::scripted("fake", script(case));
    let registry = registry(case, &fake);
    let strict = case["options"]["strict"].as_bool().unwrap_or(true);
    let compile =
        |flow: &Value| support::try_compile(flow, case.get("manifest"), &registry, strict);
    let flow = match compile(&case["flow"]) {
        Ok((flow, validation)) => {
            compare_validation(&mut differences, expect, &validation);
            flow
        }
        Err(validation) => {
            compare_validation(&mut differences, expect, &validation);
            if expect.get("status").is_some() {
                differences.push("status: the flow is not valid".to_owned());
            }
            return differences;
        }
    };
    if expect.get("status").is_none() {
        return differences;
    }
    let subflows = case["subflows"].as_object().cloned().unwrap_or_default();
    let compiled = subflows.iter().map(|(id, flow)| match compile(flow) {
        Ok((flow, _)) => (id.clone(), flow),
        Err(validation) => panic!("sub-flow {id:?} is not valid: {}", json!(validation)),
    });
    let subflows = Subflows(compiled.collect());
    let recorder = Arc::new(recorder(case));
    let ports = FlowPorts {
        flows: Some(Arc::new(subflows)),
        events: recorder.clone(),
        hooks: recorder.clone(),
        ..FlowPorts::new(registry)
    };
    let options = options(case, &recorder);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime");
    let end = runtime.block_on(run_to_end(case, &flow, &options, &ports));
    compare_end(&mut differences, expect, &flow, &end);
    compare_trace(&mut differences, expect, &recorder);
    compare_calls(&mut differences, expect, &recorder, &fake.calls());
    differences
}

/// Returns a recorder that cancels the run after the events that a case names.
fn recorder(case: &Value) -> Recorder {
    let actions = case["actions"].as_array().cloned().unwrap_or_default();
    let cancels = actions.iter().filter(|action| action["do"] == "cancel");
    let after = cancels.filter_map(|action| action["after"].as_str().map(str::to_owned));
    Recorder {
        cancel_after: after.collect(),
        ..Recorder::default()
    }
}

fn script(case: &Value) -> HashMap<String, Vec<ScriptedTurn>> {
    let script = case["adapter"]["script"].clone();
    if script.is_null() {
        return HashMap::new();
    }
    serde_json::from_value(script).expect("a script of turn results")
}

fn registry(case: &Value, fake: &FakeFactory) -> AdapterRegistry {
    let mut registry = AdapterRegistry::default();
    let kinds = case["adapters"]
        .as_array()
        .cloned()
        .unwrap_or_else(|| vec![json!("fake")]);
    for kind in kinds {
        let kind = kind.as_str().expect("a kind");
        let factory = fake.under_kind(kind);
        registry
            .register(Arc::new(factory))
            .expect("a compatible adapter");
    }
    registry
}

fn options(case: &Value, recorder: &Recorder) -> FlowOptions {
    let given = &case["options"];
    let selector = |key: &str| match given[key].as_array() {
        Some(nodes) => {
            let names = nodes
                .iter()
                .filter_map(|node| node.as_str().map(str::to_owned));
            NodeSelector::Named(names.collect())
        }
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
        cancel: recorder.cancel.clone(),
        max_subflow_depth: usize::try_from(number("maxSubflowDepth", 5)).expect("a depth"),
        dry_run: given["dryRun"].as_bool().unwrap_or(false),
        ..FlowOptions::new("run")
    }
}

async fn run_to_end(
    case: &Value,
    flow: &Arc<CompiledFlow>,
    options: &FlowOptions,
    ports: &FlowPorts,
) -> FlowEnd {
    let input = RunInput::read(case["input"].clone()).expect("an input");
    let mut end = run_flow(flow, FlowStart::Fresh(input), options, ports).await;
    for answer in case["resume"].as_array().cloned().unwrap_or_default() {
        let FlowEnd {
            mut machine,
            data,
            histories,
            ..
        } = end;
        machine.begin_run(0);
        if !machine.questions().is_empty() {
            machine
                .answer(answer)
                .expect("an answer to the open question");
        }
        let options = FlowOptions {
            histories,
            ..options.clone()
        };
        let start = FlowStart::Resumed(Box::new(machine), Box::new(data));
        end = run_flow(flow, start, &options, ports).await;
    }
    end
}

fn compare_end(differences: &mut Vec<String>, expect: &Value, flow: &CompiledFlow, end: &FlowEnd) {
    let (status, error, result) = match &end.outcome {
        FlowOutcome::Finished(result) => ("success", Value::Null, json!(result)),
        FlowOutcome::Failed(error) => ("error", json!(error), Value::Null),
        _ => ("interrupted", Value::Null, Value::Null),
    };
    compare(differences, "status", &json!(status), &expect["status"]);
    for (key, actual) in [("error", error), ("result", result)] {
        if let Some(expected) = expect.get(key) {
            compare(differences, key, &actual, expected);
        }
    }
    for (node, ports) in expect["ports"].as_object().into_iter().flatten() {
        let index = flow.find(node).expect("a node of the flow");
        for (port, expected) in ports.as_object().into_iter().flatten() {
            let actual = end.data.port(index, port).cloned().unwrap_or(Value::Null);
            compare(
                differences,
                &format!("port {node}.{port}"),
                &actual,
                expected,
            );
        }
    }
}

fn compare_trace(differences: &mut Vec<String>, expect: &Value, recorder: &Recorder) {
    let actual = [
        ("order", json!(*recorder.order.lock().unwrap())),
        ("steps", json!(*recorder.steps.lock().unwrap())),
        ("events", json!(*recorder.lines.lock().unwrap())),
    ];
    for (key, actual) in actual {
        if let Some(expected) = expect.get(key) {
            compare(differences, key, &actual, expected);
        }
    }
}

fn compare_calls(
    differences: &mut Vec<String>,
    expect: &Value,
    recorder: &Recorder,
    calls: &[FakeCall],
) {
    let mut sessions: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut turns: HashMap<String, &AgentInvocation> = HashMap::new();
    let mut aborted = Vec::new();
    for call in calls {
        match call {
            FakeCall::Turn(turn) => {
                sessions
                    .entry(&turn.agent.agent_id)
                    .or_default()
                    .push(&turn.node_id);
                turns.insert(format!("{}#{}", turn.node_id, turn.visit), turn);
            }
            FakeCall::Abort(id) => {
                aborted.push(recorder.invocations.lock().unwrap().get(&id.0).cloned());
            }
            _ => {}
        }
    }
    if let Some(expected) = expect.get("sessions") {
        compare(differences, "sessions", &json!(sessions), expected);
    }
    if let Some(expected) = expect.get("aborted") {
        compare(differences, "aborted", &json!(aborted), expected);
    }
    for (key, expected) in expect["prompts"].as_object().into_iter().flatten() {
        let Some(turn) = turns.get(key) else {
            differences.push(format!("prompts: there was no turn {key}"));
            continue;
        };
        compare_prompt(differences, key, turn, expected);
    }
}

fn compare_prompt(
    differences: &mut Vec<String>,
    key: &str,
    turn: &AgentInvocation,
    expected: &Value,
) {
    let AgentInvocation {
        system_prompt: system,
        user_prompt: user,
        ..
    } = turn;
    let (present, order) = (&expected["system"], &expected["systemOrder"]);
    compare_text(
        differences,
        &format!("system part of {key}"),
        system,
        present,
        order,
    );
    let (present, order) = (&expected["user"], &expected["userOrder"]);
    compare_text(
        differences,
        &format!("user part of {key}"),
        user,
        present,
        order,
    );
    for text in expected["never"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
    {
        if system.contains(text) || user.contains(text) {
            differences.push(format!("prompt of {key}: must not contain {text:?}"));
        }
    }
}
