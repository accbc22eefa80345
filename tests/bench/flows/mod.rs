//! Figures of flows: the engine and the runtime in this process, and a gateway with stored flows.

mod chain;
mod in_process;

use std::{fmt, net::SocketAddr, path::Path, time::Duration};

use anyhow::Context as _;
use reqwest::Client;
use serde_json::{Value, json};

use self::chain::{NODES, chain, ring};
pub(super) use self::in_process::{StepFigures, measure as measure_steps};
use super::{
    figures::Figures,
    files,
    load::{Load, Target},
    meter::Server,
    provider,
};

/// Flows that are stored while runs of the lead agent are measured: as many as a user may have.
const STORED: usize = 200;
/// Size of each answer in the long run, in tokens of four bytes.
const ANSWER_TOKENS: usize = 256;
/// Limit of supersteps of the long run.
const SUPERSTEPS: u64 = 100;
/// Number of long runs. SQLite reuses the space of its write-ahead log, so that one run may not
/// change the size of the folder.
const LONG_RUNS: u64 = 20;

/// Measurements of flows on one gateway.
#[derive(Debug)]
pub(super) struct FlowFigures {
    /// Plain runs of one token and runs of a chain of ten fake agents, with the number of clients.
    pairs: Vec<(usize, Figures, Figures)>,
    /// Plain runs after [`STORED`] flows are stored.
    with_flows: Figures,
    /// Bytes that a run of 100 supersteps adds to the data folder.
    stored: u64,
}

impl FlowFigures {
    pub(super) fn failed_runs(&self) -> usize {
        let pairs = self.pairs.iter();
        let failed: usize = pairs
            .map(|(_, plain, flow)| plain.failed + flow.failed)
            .sum();
        failed + self.with_flows.failed
    }
}

/// Measures a gateway without other load. `home` is its data folder.
pub(super) async fn measure(
    address: SocketAddr,
    server: &Server,
    home: &Path,
    seconds: u64,
) -> anyhow::Result<FlowFigures> {
    let gateway = Gateway {
        address,
        client: Client::builder().no_proxy().build()?,
    };
    let target = Target::gateway(address, false);
    gateway.store("bench", &chain("model")).await?;
    let mut pairs = Vec::new();
    for clients in [1, 16] {
        let load = Load::short_runs(clients, seconds);
        let plain = server.under(&target, &load).await?;
        let flow = server.under(&target, &load.of_flow("flow-bench")).await?;
        pairs.push((clients, plain, flow));
    }
    let stored = gateway.size_of_long_runs(home).await? / LONG_RUNS;
    // Two are stored already: the chain and the ring.
    for n in 2..STORED {
        gateway
            .store(&format!("bench-{n}"), &chain("model"))
            .await?;
    }
    let with_flows = server
        .under(&target, &Load::short_runs(16, seconds))
        .await?;
    Ok(FlowFigures {
        pairs,
        with_flows,
        stored,
    })
}

struct Gateway {
    address: SocketAddr,
    client: Client,
}

impl Gateway {
    async fn post(&self, path: &str, body: &Value) -> anyhow::Result<Value> {
        let url = format!("http://{}{path}", self.address);
        let response = self.client.post(url).json(body).send().await?;
        let status = response.status();
        let text = response.text().await?;
        anyhow::ensure!(status.is_success(), "POST {path}: {status} {text}");
        serde_json::from_str(&text).with_context(|| format!("answer of POST {path}"))
    }

    async fn store(&self, id: &str, content: &str) -> anyhow::Result<()> {
        let body = json!({"id": id, "content": content});
        self.post("/api/flows", &body).await.map(|_| ())
    }

    /// Runs ten model nodes of one agent in a ring up to the limit of supersteps, on several
    /// threads, and returns the growth of the data folder.
    async fn size_of_long_runs(&self, home: &Path) -> anyhow::Result<u64> {
        self.store("ring", &ring("model")).await?;
        let before = files::size_of(home)?;
        for _ in 0..LONG_RUNS {
            self.long_run().await?;
        }
        Ok(files::size_of(home)?.saturating_sub(before))
    }

    async fn long_run(&self) -> anyhow::Result<()> {
        let thread = self.post("/threads", &json!({})).await?;
        let thread = thread["thread_id"].as_str().context("a thread")?;
        let run = json!({
            "assistant_id": "flow-ring",
            "input": {"userPrompt": provider::prompt(ANSWER_TOKENS, Duration::ZERO)},
            "config": {"recursion_limit": SUPERSTEPS},
            "raise_error": false,
        });
        let wait = format!("/threads/{thread}/runs/wait");
        let end = self.post(&wait, &run).await?.to_string();
        anyhow::ensure!(end.contains("recursion_limit"), "the long run ended: {end}");
        Ok(())
    }
}

impl fmt::Display for StepFigures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "\n## Flows in one process, {NODES} fake agents in a chain\n"
        )?;
        writeln!(
            f,
            "- engine alone: {:.0} node steps per second of processor time",
            self.engine
        )?;
        writeln!(
            f,
            "- through the runtime on memory stores with a viewer of updates: {:.0} by the clock, \
             {:.0} per second of processor time",
            self.by_clock, self.by_processor
        )
    }
}

impl fmt::Display for FlowFigures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (clients, plain, flow) in &self.pairs {
            writeln!(
                f,
                "- flow of {NODES} fake agents / plain run of one token, {clients} clients: end p50 \
                 x {:.2}, runs/s x {:.2}, CPU per run x {:.2}",
                flow.end.p50.as_secs_f64() / plain.end.p50.as_secs_f64(),
                flow.runs_per_second / plain.runs_per_second,
                flow.cpu_per_run.as_secs_f64() / plain.cpu_per_run.as_secs_f64(),
            )?;
        }
        if let Some((_, plain, _)) = self.pairs.last() {
            writeln!(
                f,
                "- plain run with {STORED} stored flows / with one: end p50 x {:.2}, CPU per run x {:.2}",
                self.with_flows.end.p50.as_secs_f64() / plain.end.p50.as_secs_f64(),
                self.with_flows.cpu_per_run.as_secs_f64() / plain.cpu_per_run.as_secs_f64(),
            )?;
        }
        writeln!(
            f,
            "- {SUPERSTEPS} supersteps over {NODES} model nodes of one agent, answers of 1 KiB, store: \
             {:.1} MB",
            self.stored as f64 / 1e6
        )
    }
}
