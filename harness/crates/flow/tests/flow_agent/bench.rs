//! A flow with a runtime in memory.

use std::collections::HashMap;
use std::sync::Arc;

use deerflow_core::ids::ThreadId;
use deerflow_core::messages::Message;
use deerflow_flow::adapter::AdapterRegistry;
use deerflow_flow::adapters::fake::{FakeCall, FakeFactory, ScriptedTurn};
use deerflow_flow::agent::{FlowAgent, FlowDependencies};
use deerflow_flow::assets::PromptAssetManifest;
use deerflow_flow::binding::AdapterList;
use deerflow_flow::compile::compile_text;
use deerflow_flow::validate::Options;
use deerflow_runtime::agent::Agent;
use deerflow_runtime::checkpoint::Checkpointer;
use deerflow_runtime::in_memory::runtime_in_memory;
use deerflow_runtime::runs::{RunInput, RunLimits, RunRequest, RunsFacade, WaitOutcome};
use serde_json::Value;

#[path = "../support/one_flow.rs"]
mod one_flow;

use one_flow::OneFlow;

/// A flow with its runtime.
pub(crate) struct Bench {
    pub(crate) agent: Arc<FlowAgent>,
    pub(crate) fake: FakeFactory,
    pub(crate) runs: RunsFacade,
    pub(crate) checkpoints: Arc<dyn Checkpointer>,
    pub(crate) thread: ThreadId,
}

impl Bench {
    /// Creates a flow whose nodes answer by a script.
    pub(crate) fn new(text: &str, script: Value) -> Self {
        let script: HashMap<String, Vec<ScriptedTurn>> =
            serde_json::from_value(script).expect("valid");
        let fake = FakeFactory::scripted("fake", script);
        let mut registry = AdapterRegistry::default();
        registry.register(Arc::new(fake.clone())).expect("valid");
        let (manifest, options) = (PromptAssetManifest::default(), Options::default());
        let compiled =
            compile_text(text, &manifest, &AdapterList::new(["fake"]), &options).expect("valid");
        let dependencies = Arc::new(FlowDependencies::new(registry));
        let agent = Arc::new(FlowAgent::new(compiled.flow, dependencies));
        let runtime = runtime_in_memory(Arc::new(OneFlow(agent.clone()))).expect("valid");
        let checkpoints = runtime.checkpointer.clone();
        let runs = RunsFacade::new(runtime, RunLimits::default());
        Self {
            agent,
            fake,
            runs,
            checkpoints,
            thread: ThreadId::parse("t1").expect("valid"),
        }
    }

    pub(crate) async fn run(&self, input: RunInput) -> WaitOutcome {
        let request = RunRequest {
            input,
            ..RunRequest::ask("flow-x", self.thread.clone(), Message::human(""))
        };
        self.runs.create_and_wait(request).await.expect("valid").1
    }

    /// Runs an input that a client sends.
    pub(crate) async fn send(&self, input: Value) -> WaitOutcome {
        let mut values = self
            .agent
            .read_input(input.as_object().cloned().expect("valid"))
            .expect("valid");
        let text = values.shift_remove("messages").expect("valid");
        let update = deerflow_core::state::StateUpdate {
            messages: vec![Message::human(text.as_str().expect("valid"))],
            channels: values.into_iter().collect(),
        };
        self.run(RunInput::Update(update)).await
    }

    /// Returns the nodes of the turns so far.
    pub(crate) fn turns(&self) -> Vec<String> {
        let turn = |call| match call {
            FakeCall::Turn(turn) => Some(turn.node_id),
            _ => None,
        };
        self.fake.calls().into_iter().filter_map(turn).collect()
    }
}

pub(crate) fn values(outcome: WaitOutcome) -> Value {
    match outcome {
        WaitOutcome::Values(values) => serde_json::from_slice(&values.into_bytes()).expect("valid"),
        WaitOutcome::Failed { message, .. } => panic!("the run failed: {message}"),
    }
}
