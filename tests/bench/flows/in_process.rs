//! Flows without a gateway: the engine alone, through the runtime on memory stores, and the size of
//! the checkpoints of a long run.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use async_trait::async_trait;
use deerflow_tests::process::cpu_time;
use futures_util::StreamExt as _;
use harness::flow::{
    adapter::AdapterRegistry,
    adapters::fake::FakeFactory,
    agent::{FlowAgent, FlowDependencies},
    assets::PromptAssetManifest,
    binding::AdapterList,
    compile::compile_text,
    compiled::CompiledFlow,
    driver::{FlowOptions, FlowOutcome, FlowPorts, FlowStart, run_flow},
    machine::RunInput,
    validate::Options,
};
use harness::ids::ThreadId;
use harness::messages::Message;
use harness::runtime::agent::{Agent, AgentResolver, AssistantInfo, UnknownAssistant};
use harness::runtime::in_memory::InMemoryStores;
use harness::runtime::runs::{RunLimits, RunRequest, RunsFacade, StreamMode};
use harness::runtime::stream_bridge::StreamItem;
use serde_json::{Map, Value};

use super::chain::{NODES, chain};

/// Adapter kind of all agents.
const KIND: &str = "fake";

/// Node steps per second of ten fake agents in a chain.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StepFigures {
    /// Engine alone, per second of processor time.
    pub(super) engine: f64,
    /// Through the runtime with one viewer of `updates`, by the clock.
    pub(super) by_clock: f64,
    /// The same per second of processor time, the viewer included.
    pub(super) by_processor: f64,
}

/// Measures for this long each.
pub(crate) async fn measure(period: Duration) -> anyhow::Result<StepFigures> {
    let (engine, _) = steps_of(period, engine_run()?).await?;
    let (by_processor, by_clock) = steps_of(period, runtime_run()?).await?;
    Ok(StepFigures {
        engine,
        by_clock,
        by_processor,
    })
}

/// Repeats a run and returns its node steps per second of processor time and by the clock.
async fn steps_of(
    period: Duration,
    run: impl AsyncFn() -> anyhow::Result<()>,
) -> anyhow::Result<(f64, f64)> {
    let warm_up = Instant::now();
    while warm_up.elapsed() < period / 4 {
        run().await?;
    }
    let (mut runs, started) = (0_u32, Instant::now());
    let before = cpu_time(std::process::id())?;
    while started.elapsed() < period {
        run().await?;
        runs += 1;
    }
    let cpu = cpu_time(std::process::id())?.saturating_sub(before);
    let steps = f64::from(runs) * NODES as f64;
    Ok((
        steps / cpu.as_secs_f64(),
        steps / started.elapsed().as_secs_f64(),
    ))
}

fn compiled(text: &str) -> anyhow::Result<Arc<CompiledFlow>> {
    let manifest = PromptAssetManifest::default();
    let compiled = compile_text(
        text,
        &manifest,
        &AdapterList::new([KIND]),
        &Options::default(),
    );
    let compiled = compiled.map_err(|invalid| anyhow::anyhow!("{:?}", invalid.errors))?;
    Ok(compiled.flow)
}

fn registry(fake: FakeFactory) -> anyhow::Result<AdapterRegistry> {
    let mut registry = AdapterRegistry::default();
    registry.register(Arc::new(fake))?;
    Ok(registry)
}

fn engine_run() -> anyhow::Result<impl AsyncFn() -> anyhow::Result<()>> {
    let flow = compiled(&chain(KIND))?;
    let ports = FlowPorts::new(registry(FakeFactory::plain(KIND))?);
    Ok(async move || {
        let start = FlowStart::Fresh(RunInput::prompt("Go"));
        let end = run_flow(&flow, start, &FlowOptions::new("run"), &ports).await;
        anyhow::ensure!(
            matches!(end.outcome, FlowOutcome::Finished(_)),
            "{:?}",
            end.outcome
        );
        Ok(())
    })
}

/// Resolver of one flow.
#[derive(Debug)]
struct OneFlow(Arc<FlowAgent>);

#[async_trait]
impl AgentResolver for OneFlow {
    async fn resolve(
        &self,
        _: &str,
        _: &Map<String, Value>,
    ) -> Result<Arc<dyn Agent>, UnknownAssistant> {
        Ok(self.0.clone())
    }

    async fn list(&self) -> Vec<AssistantInfo> {
        Vec::new()
    }
}

fn runtime_run() -> anyhow::Result<impl AsyncFn() -> anyhow::Result<()>> {
    let flow = compiled(&chain(KIND))?;
    let dependencies = FlowDependencies::new(registry(FakeFactory::plain(KIND))?);
    let agent = Arc::new(FlowAgent::new(flow, Arc::new(dependencies)));
    let ports = InMemoryStores::new().runtime(Arc::new(OneFlow(agent)))?;
    let ids = ports.ids.clone();
    let runs = RunsFacade::new(ports, RunLimits::default());
    Ok(async move || {
        let thread = ThreadId::parse(ids.random().to_string())?;
        let request = RunRequest {
            stream_modes: [StreamMode::Updates].into_iter().collect(),
            ..RunRequest::ask("flow-bench", thread, Message::human("Go"))
        };
        let (_, mut stream) = runs.create_and_stream(request, Duration::ZERO).await?;
        let mut updates = 0;
        while let Some(item) = stream.items.next().await {
            if let StreamItem::Event(event) = item {
                updates += usize::from(&*event.event == "updates");
            }
        }
        anyhow::ensure!(updates >= NODES, "{updates} updates");
        Ok(())
    })
}
