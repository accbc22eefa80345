//! Clients that make sequential runs, bounded in time and number.

use std::{
    borrow::Cow,
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
use parking_lot::Mutex;
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
    /// Beginning of the paths of its dialect.
    pub(super) prefix: &'static str,
    /// Path of a run without a thread.
    pub(super) path: &'static str,
    /// `true` if each run has a thread of its own.
    pub(super) creates_threads: bool,
}

impl Target {
    pub(super) fn relay(address: SocketAddr) -> Self {
        Self {
            address,
            prefix: "",
            path: "/relay",
            creates_threads: false,
        }
    }

    pub(super) fn gateway(address: SocketAddr, stateless: bool) -> Self {
        Self {
            address,
            prefix: "/api",
            path: "/api/runs/stream",
            creates_threads: !stateless,
        }
    }

    /// Returns the gateway in the dialect of the LangGraph Platform, with threads.
    pub(super) fn platform(address: SocketAddr) -> Self {
        Self {
            prefix: "",
            path: "/runs/stream",
            ..Self::gateway(address, false)
        }
    }

    /// Returns the requests of one run on each of these threads.
    pub(super) fn runs_on(&self, threads: &[String]) -> Requests {
        let path = |thread: &String| format!("{}/threads/{thread}/runs/stream", self.prefix);
        Requests::Each(Mutex::new(threads.iter().rev().map(path).collect()))
    }
}

/// Paths of the requests of a load.
#[derive(Debug)]
pub(super) enum Requests {
    /// All requests have the same path.
    Same(&'static str),
    /// Each has its own, from the last to the first.
    Each(Mutex<Vec<String>>),
}

impl Requests {
    /// Returns the path of the next request.
    fn next(&self) -> Option<Cow<'static, str>> {
        match self {
            Self::Same(path) => Some(Cow::Borrowed(path)),
            Self::Each(paths) => paths.lock().pop().map(Cow::Owned),
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
    stream_mode: &'static str,
    /// Number of tool calls before the tokens.
    rounds: usize,
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
            stream_mode: "messages-tuple",
            rounds: 0,
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

    /// Returns the same load with this stream mode.
    pub(super) fn in_mode(self, stream_mode: &'static str) -> Self {
        Self {
            stream_mode,
            ..self
        }
    }

    /// Returns the same load with this many tool calls, one after the other, before the tokens.
    pub(super) fn with_rounds(self, rounds: usize, tokens: usize) -> Self {
        Self {
            rounds,
            tokens,
            ..self
        }
    }

    /// Returns the same load without a limit of time for this many runs.
    pub(super) fn exactly(self, runs: usize) -> Self {
        Self {
            at_most: Duration::from_secs(600),
            runs_at_most: runs,
            ..self
        }
    }

    /// Returns the number of threads that suffice if this many runs end per second in a warm-up,
    /// which is slower than the load.
    pub(super) fn threads_for(&self, runs_per_second: f64) -> usize {
        let expected = (2.5 * runs_per_second * self.at_most.as_secs_f64()) as usize;
        (expected + self.clients.max(16)).min(self.runs_at_most)
    }

    /// Returns the maximum number of runs.
    pub(super) fn runs_at_most(&self) -> usize {
        self.runs_at_most
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
        let mut prompt = provider::prompt(self.tokens, self.gap);
        if self.rounds > 0 {
            prompt.push_str(&provider::rounds(self.rounds));
        }
        let message = json!({"type": "human", "content": prompt});
        let run = json!({
            "assistant_id": "lead_agent",
            "input": {"messages": [message]},
            "stream_mode": [self.stream_mode],
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
        if !self.gap.is_zero() {
            write!(f, " every {} ms", self.gap.as_millis())?;
        }
        if self.rounds > 0 {
            write!(f, " after {} tool calls", self.rounds)?;
        }
        Ok(())
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
pub(super) async fn drive(
    address: SocketAddr,
    load: &Load,
    requests: Requests,
) -> anyhow::Result<Outcome> {
    let body = load.body();
    let requests = Arc::new(requests);
    let remaining = Arc::new(AtomicUsize::new(load.runs_at_most));
    let start = Arc::new(Barrier::new(load.clients + 1));
    let mut clients = JoinSet::new();
    for _ in 0..load.clients {
        let worker = Worker {
            address,
            load: load.clone(),
            body: body.clone(),
            requests: Arc::clone(&requests),
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
    address: SocketAddr,
    load: Load,
    body: Bytes,
    requests: Arc<Requests>,
    remaining: Arc<AtomicUsize>,
}

impl Worker {
    async fn work(self, start: &Barrier) -> Outcome {
        let mut outcome = Outcome::default();
        let client = Client::connect(self.address).await;
        start.wait().await;
        let until = Instant::now() + self.load.at_most;
        let mut client = match client {
            Ok(client) => client,
            Err(error) => {
                outcome.fail(&error);
                return outcome;
            }
        };
        let tokens = self.load.tokens as u64;
        while Instant::now() < until && self.takes_one() {
            let Some(path) = self.requests.next() else {
                break;
            };
            match client.run(&path, self.body.clone(), tokens).await {
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
