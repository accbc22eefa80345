//! Runs a flow with the fake adapter and returns what happened.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use deerflow_core::clock::Clock;
use deerflow_flow::adapter::{AdapterRegistry, AgentInvocation, FlowError};
use deerflow_flow::adapters::fake::{FakeCall, FakeFactory, ScriptedTurn};
use deerflow_flow::binding::AdapterList;
use deerflow_flow::compiled::CompiledFlow;
use deerflow_flow::driver::{
    FlowEnd, FlowOptions, FlowOutcome, FlowPorts, FlowSource, FlowStart, run_flow,
};
use deerflow_flow::machine::RunInput;
use serde_json::{Value, json};

use crate::recorder::Recorder;
use crate::support;

/// A flow with its script and what a run of it left behind.
pub(crate) struct Fixture {
    pub(crate) flow: Arc<CompiledFlow>,
    pub(crate) fake: FakeFactory,
    pub(crate) recorder: Arc<Recorder>,
    pub(crate) options: FlowOptions,
    pub(crate) subflows: HashMap<String, Arc<CompiledFlow>>,
    /// Time that passes between two readings of the clock.
    pub(crate) clock_step_ms: i64,
}

/// Clock that advances with each reading.
#[derive(Debug)]
struct SteppingClock(Mutex<DateTime<Utc>>, TimeDelta);

impl Clock for SteppingClock {
    fn now(&self) -> DateTime<Utc> {
        let mut now = self.0.lock().unwrap();
        *now += self.1;
        *now
    }
}

#[derive(Debug)]
struct Subflows(HashMap<String, Arc<CompiledFlow>>);

#[async_trait]
impl FlowSource for Subflows {
    async fn get(&self, flow_id: &str) -> Result<Option<Arc<CompiledFlow>>, FlowError> {
        Ok(self.0.get(flow_id).cloned())
    }
}

pub(crate) fn agent(id: &str) -> Value {
    json!({"nodeId": id, "nodeKind": "agent.sub", "agentId": "a"})
}

pub(crate) fn agent_with(id: &str, config: Value) -> Value {
    json!({"nodeId": id, "nodeKind": "agent.sub", "agentId": "a", "config": config})
}

pub(crate) fn node(id: &str, kind: &str, config: Value) -> Value {
    json!({"nodeId": id, "nodeKind": kind, "config": config})
}

pub(crate) fn edge(source: &str, target: &str) -> Value {
    json!({"source": source, "target": target})
}

pub(crate) fn handle(source: &str, handle: &str, target: &str) -> Value {
    json!({"source": source, "target": target, "sourceHandle": handle})
}

pub(crate) fn data(source: &str, port: &str, target: &str, input: &str) -> Value {
    json!({
        "source": source, "sourceHandle": port, "target": target, "targetHandle": input,
        "dataEdge": true,
    })
}

/// Document of a flow that starts at its first node.
pub(crate) fn document(nodes: &[Value], edges: &[Value]) -> Value {
    json!({
        "meta": {"schemaVersion": "2.0", "name": "test"},
        "agents": {"agentDefs": [{"agentId": "a", "adapterKind": "fake"}]},
        "graph": {"nodes": nodes, "edges": edges, "startNodeId": nodes[0]["nodeId"]},
    })
}

/// Compiles a document. The adapters `fake` and `nope` pass validation.
pub(crate) fn compiled(document: &Value) -> Arc<CompiledFlow> {
    try_compiled(document).unwrap_or_else(|problems| panic!("{problems}"))
}

pub(crate) fn try_compiled(document: &Value) -> Result<Arc<CompiledFlow>, String> {
    let adapters = AdapterList::new(["fake", "nope"]);
    match support::try_compile(document, None, &adapters, true) {
        Ok((flow, _)) => Ok(flow),
        Err(validation) => Err(json!(validation.errors).to_string()),
    }
}

impl Fixture {
    pub(crate) fn of(document: &Value, script: Value) -> Self {
        let script: HashMap<String, Vec<ScriptedTurn>> = serde_json::from_value(script).unwrap();
        Self {
            flow: compiled(document),
            fake: FakeFactory::scripted("fake", script),
            recorder: Arc::new(Recorder::default()),
            options: FlowOptions::new("run"),
            subflows: HashMap::new(),
            clock_step_ms: 0,
        }
    }

    pub(crate) fn new(nodes: &[Value], edges: &[Value], script: Value) -> Self {
        Self::of(&document(nodes, edges), script)
    }

    pub(crate) fn ports(&self) -> FlowPorts {
        let mut registry = AdapterRegistry::default();
        registry.register(Arc::new(self.fake.clone())).unwrap();
        let step = TimeDelta::milliseconds(self.clock_step_ms);
        FlowPorts {
            clock: Arc::new(SteppingClock(Mutex::new(DateTime::UNIX_EPOCH), step)),
            flows: Some(Arc::new(Subflows(self.subflows.clone()))),
            events: self.recorder.clone(),
            hooks: self.recorder.clone(),
            ..FlowPorts::new(registry)
        }
    }

    pub(crate) fn run(&self) -> FlowEnd {
        self.start(FlowStart::Fresh(RunInput::prompt("T")))
    }

    pub(crate) fn start(&self, start: FlowStart) -> FlowEnd {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(run_flow(&self.flow, start, &self.options, &self.ports()))
    }

    /// Continues an end in a new run, with an answer if a question is open.
    pub(crate) fn resume(&self, end: FlowEnd, answer: Value) -> FlowEnd {
        let FlowEnd {
            mut machine, data, ..
        } = end;
        machine.begin_run(0);
        if !machine.questions().is_empty() {
            machine.answer(answer).unwrap();
        }
        self.start(FlowStart::Resumed(Box::new(machine), Box::new(data)))
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.recorder.lines.lock().unwrap().clone()
    }

    pub(crate) fn order(&self) -> Vec<String> {
        self.recorder.order.lock().unwrap().clone()
    }

    pub(crate) fn steps(&self) -> Vec<Vec<String>> {
        self.recorder.steps.lock().unwrap().clone()
    }

    pub(crate) fn turns(&self) -> Vec<AgentInvocation> {
        let turn = |call| match call {
            FakeCall::Turn(turn) => Some(*turn),
            _ => None,
        };
        self.fake.calls().into_iter().filter_map(turn).collect()
    }

    pub(crate) fn turn(&self, node: &str) -> AgentInvocation {
        self.turns()
            .into_iter()
            .rev()
            .find(|turn| turn.node_id == node)
            .unwrap()
    }
}

pub(crate) fn result(end: &FlowEnd) -> Value {
    match &end.outcome {
        FlowOutcome::Finished(result) => json!(result),
        other => panic!("the run did not finish: {other:?}"),
    }
}

pub(crate) fn failure(end: &FlowEnd) -> FlowError {
    match &end.outcome {
        FlowOutcome::Failed(error) => error.clone(),
        other => panic!("the run did not fail: {other:?}"),
    }
}
