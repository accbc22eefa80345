//! Clients that make sequential runs, bounded in time and number.

use std::{
    fmt,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use anyhow::Context as _;
use axum::body::Bytes;
use serde_json::json;
use tokio::{sync::Barrier, task::JoinSet, time::Instant};

use super::{
    client::{Client, Sample},
    provider,
};

/// Server that executes the runs.
#[derive(Debug, Clone)]
pub(super) struct Target {
    pub(super) address: SocketAddr,
    /// Path of a run without a thread.
    pub(super) path: &'static str,
    /// `true` if each run gets a new thread first.
    pub(super) creates_threads: bool,
}

impl Target {
    pub(super) fn relay(address: SocketAddr) -> Self {
        Self {
            address,
            path: "/relay",
            creates_threads: false,
        }
    }

    pub(super) fn gateway(address: SocketAddr, stateless: bool) -> Self {
        Self {
            address,
            path: "/api/runs/stream",
            creates_threads: !stateless,
        }
    }
}

/// Number of clients and their requests.
#[derive(Debug, Clone)]
pub(super) struct Load {
    pub(super) clients: usize,
    pub(super) tokens: usize,
    pub(super) gap: Duration,
    /// Flow without model calls that runs instead of the lead agent.
    flow: Option<&'static str>,
    /// No run begins after this time.
    at_most: Duration,
    runs_at_most: usize,
}

impl Load {
    pub(super) fn short_runs(clients: usize, seconds: u64) -> Self {
        let at_most = Duration::from_secs(seconds);
        Self {
            clients,
            tokens: 1,
            gap: Duration::ZERO,
            flow: None,
            at_most,
            runs_at_most: 50_000,
        }
    }

    pub(super) fn long_runs(clients: usize, seconds: u64) -> Self {
        Self {
            tokens: 200,
            ..Self::short_runs(clients, seconds)
        }
    }

    /// Returns a load of a thousand clients that stream one answer each.
    pub(super) fn live(tokens: usize) -> Self {
        Self {
            tokens,
            gap: Duration::from_millis(10),
            runs_at_most: 1000,
            ..Self::short_runs(1000, 60)
        }
    }

    /// Returns the same load with dry runs of a flow.
    pub(super) fn of_flow(&self, assistant: &'static str) -> Self {
        Self {
            flow: Some(assistant),
            tokens: 0,
            ..self.clone()
        }
    }

    /// Returns a small, unmeasured version of the same load.
    pub(super) fn warm_up(&self) -> Self {
        let clients = self.clients.min(16);
        Self {
            clients,
            gap: Duration::ZERO,
            at_most: Duration::from_millis(300),
            runs_at_most: 64,
            ..self.clone()
        }
    }

    fn body(&self) -> Bytes {
        if let Some(flow) = self.flow {
            let run = json!({
                "assistant_id": flow,
                "input": {"userPrompt": "Go"},
                "context": {"dry_run": true},
                "stream_mode": ["updates"],
                "on_disconnect": "continue",
            });
            return run.to_string().into();
        }
        let message = json!({"type": "human", "content": provider::prompt(self.tokens, self.gap)});
        let run = json!({
            "assistant_id": "lead_agent",
            "input": {"messages": [message]},
            "stream_mode": ["messages-tuple"],
            "on_disconnect": "continue",
        });
        run.to_string().into()
    }
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (clients, tokens) = (self.clients, self.tokens);
        let plural = |count| if count == 1 { "" } else { "s" };
        write!(
            f,
            "{clients} client{}, {tokens} token{}",
            plural(clients),
            plural(tokens)
        )?;
        if self.gap.is_zero() {
            Ok(())
        } else {
            write!(f, " every {} ms", self.gap.as_millis())
        }
    }
}

/// Result of a load.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    pub(super) samples: Vec<Sample>,
    /// Time from the common start to the last end.
    pub(super) took: Duration,
    pub(super) failed: usize,
    /// Error of the first failed run.
    pub(super) fault: Option<String>,
}

/// Connects all clients, starts them together and waits for the last.
pub(super) async fn drive(target: &Target, load: &Load) -> anyhow::Result<Outcome> {
    let target = Arc::new(target.clone());
    let body = load.body();
    let remaining = Arc::new(AtomicUsize::new(load.runs_at_most));
    let start = Arc::new(Barrier::new(load.clients + 1));
    let mut clients = JoinSet::new();
    for _ in 0..load.clients {
        let worker = Worker {
            target: Arc::clone(&target),
            load: load.clone(),
            body: body.clone(),
            remaining: Arc::clone(&remaining),
        };
        let start = Arc::clone(&start);
        clients.spawn(async move { worker.work(&start).await });
    }
    start.wait().await;
    let started = Instant::now();
    let mut outcome = Outcome::default();
    while let Some(part) = clients.join_next().await {
        let part = part.context("a client panicked")?;
        outcome.samples.extend(part.samples);
        outcome.failed += part.failed;
        outcome.fault = outcome.fault.or(part.fault);
    }
    let last = outcome.samples.iter().map(|sample| sample.ended_at).max();
    outcome.took = last
        .unwrap_or_else(Instant::now)
        .saturating_duration_since(started);
    Ok(outcome)
}

struct Worker {
    target: Arc<Target>,
    load: Load,
    body: Bytes,
    remaining: Arc<AtomicUsize>,
}

impl Worker {
    async fn work(self, start: &Barrier) -> Outcome {
        let mut outcome = Outcome::default();
        let client = Client::connect(&self.target).await;
        start.wait().await;
        let until = Instant::now() + self.load.at_most;
        let mut client = match client {
            Ok(client) => client,
            Err(error) => {
                outcome.fail(&error);
                return outcome;
            }
        };
        while Instant::now() < until && self.takes_one() {
            match client.run(self.body.clone(), self.load.tokens as u64).await {
                Ok(sample) => outcome.samples.push(sample),
                Err(error) => outcome.fail(&error),
            }
        }
        outcome
    }

    fn takes_one(&self) -> bool {
        self.remaining
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |count| {
                count.checked_sub(1)
            })
            .is_ok()
    }
}

impl Outcome {
    fn fail(&mut self, error: &anyhow::Error) {
        self.failed += 1;
        self.fault.get_or_insert_with(|| format!("{error:#}"));
    }
}
