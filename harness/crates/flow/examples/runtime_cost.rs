//! Measures runs of flows through the runtime on memory stores, with one viewer of `updates`.
//! Prints, for each thousand runs of a chain of ten fake agents, the node steps per second of
//! processor time, on Linux. The stores retain all runs, so that a cost which grows with their
//! number shows.
//!
//! `cargo run --release -p deerflow-flow --example runtime_cost`
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a failure of a measurement ends it; it prints its figures"
)]

#[path = "../tests/support/one_flow.rs"]
mod one_flow;
#[path = "../tests/support/mod.rs"]
mod support;

use std::sync::Arc;
use std::time::Duration;

use deerflow_core::ids::ThreadId;
use deerflow_core::messages::Message;
use deerflow_flow::adapter::AdapterRegistry;
use deerflow_flow::adapters::fake::FakeFactory;
use deerflow_flow::agent::{FlowAgent, FlowDependencies};
use deerflow_flow::binding::AdapterList;
use deerflow_runtime::in_memory::InMemoryStores;
use deerflow_runtime::runs::{RunLimits, RunRequest, RunsFacade, StreamMode};
use deerflow_runtime::stream_bridge::StreamItem;
use futures_util::StreamExt as _;
use one_flow::OneFlow;
use serde_json::json;

const NODES: u32 = 10;
const RUNS: u32 = 1_000;

fn agent() -> Arc<FlowAgent> {
    let node = |n: u32| json!({"nodeId": format!("n{n}"), "nodeKind": "agent.sub", "agentId": "a"});
    let edge = |n: u32| json!({"source": format!("n{n}"), "target": format!("n{}", n + 1)});
    let document = json!({
        "meta": {"schemaVersion": "2.0", "name": "cost"},
        "agents": {"agentDefs": [{"agentId": "a", "adapterKind": "fake"}]},
        "graph": {
            "nodes": (0..NODES).map(node).collect::<Vec<_>>(),
            "edges": (0..NODES - 1).map(edge).collect::<Vec<_>>(),
            "startNodeId": "n0",
        },
    });
    let adapters = AdapterList::new(["fake"]);
    let (flow, _) = support::try_compile(&document, None, &adapters, true).unwrap();
    let mut registry = AdapterRegistry::default();
    registry
        .register(Arc::new(FakeFactory::plain("fake")))
        .unwrap();
    Arc::new(FlowAgent::new(
        flow,
        Arc::new(FlowDependencies::new(registry)),
    ))
}

/// Returns the processor time of this process.
fn processor_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields = stat.rsplit(") ").next().unwrap().split(' ');
    let ticks: u64 = fields
        .skip(11)
        .take(2)
        .map(|ticks| ticks.parse::<u64>().unwrap())
        .sum();
    // Linux counts 100 ticks per second.
    Duration::from_millis(10 * ticks)
}

#[tokio::main]
async fn main() {
    let ports = InMemoryStores::new()
        .runtime(Arc::new(OneFlow(agent())))
        .unwrap();
    let ids = ports.ids.clone();
    let runs = RunsFacade::new(ports, RunLimits::default());
    for thousand in 1..=5 {
        let before = processor_time();
        for _ in 0..RUNS {
            let thread = ThreadId::parse(ids.random().to_string()).unwrap();
            let request = RunRequest {
                stream_modes: [StreamMode::Updates].into_iter().collect(),
                ..RunRequest::ask("flow-cost", thread, Message::human("Go"))
            };
            let streamed = runs.create_and_stream(request, Duration::ZERO).await;
            let (_, mut stream) = streamed.unwrap();
            let mut updates = 0_u32;
            while let Some(item) = stream.items.next().await {
                if let StreamItem::Event(event) = item {
                    updates += u32::from(&*event.event == "updates");
                }
            }
            assert!(updates >= NODES, "{updates} updates");
        }
        let spent = processor_time().saturating_sub(before);
        let rate = f64::from(RUNS * NODES) / spent.as_secs_f64();
        println!("thousand {thousand}: {rate:.0} node steps per second of processor time");
    }
}
