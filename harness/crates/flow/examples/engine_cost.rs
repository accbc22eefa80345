//! Measures the engine without a runtime: node steps per second of processor time for a chain of
//! ten fake agents, and the cost of the hundredth superstep against the tenth.
//!
//! `cargo run --release -p deerflow-flow --example engine_cost`
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a failure of a measurement ends it; it prints its figures"
)]

#[path = "../tests/support/mod.rs"]
mod support;

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use deerflow_flow::adapter::AdapterRegistry;
use deerflow_flow::adapters::fake::FakeFactory;
use deerflow_flow::binding::AdapterList;
use deerflow_flow::compiled::CompiledFlow;
use deerflow_flow::driver::{
    FlowOptions, FlowOutcome, FlowPorts, FlowStart, Progress, RunHooks, run_flow,
};
use deerflow_flow::events::{FlowEvent, FlowEventSink};
use deerflow_flow::machine::{RunBounds, RunInput};
use serde_json::{Value, json};

const NODES: usize = 10;
const RUNS: usize = 20_000;

#[derive(Debug, Default)]
struct Listener;

impl FlowEventSink for Listener {
    fn emit(&self, event: FlowEvent) {
        std::hint::black_box(event);
    }
}

/// Times of the ends of supersteps.
#[derive(Debug, Default)]
struct Times(Mutex<Vec<Instant>>);

#[async_trait]
impl RunHooks for Times {
    fn superstep(&self, _: Progress<'_>) {
        self.0.lock().unwrap().push(Instant::now());
    }
}

fn flow(nodes: &Value, edges: &[Value], start: &str) -> Arc<CompiledFlow> {
    let document = json!({
        "meta": {"schemaVersion": "2.0", "name": "cost"},
        "agents": {"agentDefs": [{"agentId": "a", "adapterKind": "fake"}]},
        "graph": {"nodes": nodes, "edges": edges, "startNodeId": start},
    });
    let adapters = AdapterList::new(["fake"]);
    let (flow, _) = support::try_compile(&document, None, &adapters, true).unwrap();
    flow
}

fn agent(id: &str) -> Value {
    json!({"nodeId": id, "nodeKind": "agent.sub", "agentId": "a"})
}

fn chain() -> Arc<CompiledFlow> {
    let nodes: Vec<Value> = (0..NODES).map(|node| agent(&format!("n{node}"))).collect();
    let edge =
        |node: usize| json!({"source": format!("n{node}"), "target": format!("n{}", node + 1)});
    let edges: Vec<Value> = (0..NODES - 1).map(edge).collect();
    flow(&json!(nodes), &edges, "n0")
}

fn cycle() -> Arc<CompiledFlow> {
    let edges = [
        json!({"source": "x", "target": "y"}),
        json!({"source": "y", "target": "x"}),
    ];
    flow(&json!([agent("x"), agent("y")]), &edges, "x")
}

fn ports() -> FlowPorts {
    let mut registry = AdapterRegistry::default();
    registry
        .register(Arc::new(FakeFactory::plain("fake")))
        .unwrap();
    FlowPorts::new(registry)
}

/// Returns the processor time of this process.
fn processor_time() -> Duration {
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let nanos = text.split(' ').next().and_then(|nanos| nanos.parse().ok());
    Duration::from_nanos(nanos.unwrap_or(0))
}

async fn measure(name: &str, ports: &FlowPorts) {
    let flow = chain();
    let options = FlowOptions::new("run");
    let (before, clock) = (processor_time(), Instant::now());
    for _ in 0..RUNS {
        let start = FlowStart::Fresh(RunInput::prompt("Write a poem."));
        let end = run_flow(&flow, start, &options, ports).await;
        assert!(matches!(end.outcome, FlowOutcome::Finished(_)));
    }
    let spent = processor_time().saturating_sub(before);
    let spent = if spent.is_zero() {
        clock.elapsed()
    } else {
        spent
    };
    let steps = NODES * RUNS;
    #[expect(clippy::cast_precision_loss, reason = "a count of steps")]
    let rate = steps as f64 / spent.as_secs_f64();
    println!("{name}: {rate:.0} node steps per second of processor time");
}

async fn compare_steps() {
    let times = Arc::new(Times::default());
    let ports = FlowPorts {
        hooks: times.clone(),
        ..ports()
    };
    let bounds = RunBounds {
        recursion_limit: 101,
        ..RunBounds::default()
    };
    let options = FlowOptions {
        bounds,
        ..FlowOptions::new("run")
    };
    let flow = cycle();
    // The shortest time of many is the one without interruptions by other processes.
    let (mut tenth, mut hundredth) = (Duration::MAX, Duration::MAX);
    for _ in 0..500 {
        times.0.lock().unwrap().clear();
        let start = FlowStart::Fresh(RunInput::prompt("Write a poem."));
        run_flow(&flow, start, &options, &ports).await;
        let times = times.0.lock().unwrap();
        tenth = tenth.min(times[14] - times[4]);
        hundredth = hundredth.min(times[99] - times[89]);
    }
    let ratio = hundredth.as_secs_f64() / tenth.as_secs_f64();
    println!("superstep 100 costs {ratio:.2} times superstep 10");
}

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    runtime.block_on(async {
        measure("without a listener", &ports()).await;
        measure(
            "with a listener",
            &FlowPorts {
                events: Arc::new(Listener),
                ..ports()
            },
        )
        .await;
        compare_steps().await;
    });
}
