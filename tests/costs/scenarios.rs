//! Runs whose cost is measured, one after the other, on a gateway of their own.

use std::path::Path;
use std::time::Duration;

use deerflow_tests::gateway::{AUTH_DISABLED, GatewayOptions, GatewayProcess, deerflow_binary};
use deerflow_tests::scripted_openai::{Options, ScriptedOpenAi};
use deerflow_tests::usage::{Usage, UsageMeter};
use serde_json::{Value, json};

use crate::calibration;

/// Measurements of a scenario, and runs of each.
const BATCHES: usize = 8;
const RUNS: usize = 10;
/// Runs before the first measurement.
const WARM_UP: usize = 20;

/// Kind of run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scenario {
    /// One token on a new thread.
    NewThread,
    /// One token on a thread that has 100 messages.
    LongThread,
    /// Three tool calls, one after the other, on a new thread.
    Tools,
}

impl Scenario {
    pub(crate) const ALL: [Self; 3] = [Self::NewThread, Self::LongThread, Self::Tools];

    fn prompt(self) -> &'static str {
        match self {
            Self::NewThread | Self::LongThread => "then say hi",
            Self::Tools => {
                "[[tool:list_uploaded_files {\"max_results\":1}]] [[tool:list_uploaded_files {\"max_results\":2}]] [[tool:list_uploaded_files {\"max_results\":3}]] then say hi"
            }
        }
    }

    fn messages(self) -> usize {
        match self {
            Self::LongThread => 100,
            Self::NewThread | Self::Tools => 0,
        }
    }
}

/// Consumption of one run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Costs {
    /// CPU time as a multiple of the calibration.
    pub(crate) cpu: f64,
    /// Voluntary context switches.
    pub(crate) switches: f64,
    /// Bytes of write calls.
    pub(crate) written: f64,
    /// Allocations and reallocations.
    pub(crate) allocations: f64,
    /// Jobs of SQLite's writer.
    pub(crate) writes: f64,
}

/// Gateway with a scripted model.
pub(crate) struct Gateway {
    process: GatewayProcess,
    _home: tempfile::TempDir,
    _model: ScriptedOpenAi,
    client: reqwest::Client,
}

impl Gateway {
    pub(crate) async fn start() -> Self {
        let model = ScriptedOpenAi::start(Options::default())
            .await
            .expect("a model");
        // In memory: a slow disk delays runs, and a run that lasts longer commits once more.
        let memory = Path::new("/dev/shm");
        let home = if memory.is_dir() {
            tempfile::tempdir_in(memory)
        } else {
            tempfile::tempdir()
        };
        let home = home.expect("a home");
        let binary = deerflow_binary().expect("the binary");
        let mut options = GatewayOptions::new(binary, configuration(&model.base_url));
        options.home = Some(home.path().to_owned());
        let variables = [AUTH_DISABLED, ("TOKIO_WORKER_THREADS", "1")];
        let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
        options.env.extend(variables);
        let client = reqwest::Client::builder().no_proxy().build();
        Self {
            process: GatewayProcess::launch(options).await.expect("a gateway"),
            _home: home,
            _model: model,
            client: client.expect("a client"),
        }
    }

    /// Measures several batches of runs after a warm-up.
    pub(crate) async fn measure(&self, scenario: Scenario) -> Vec<Costs> {
        self.run_all(scenario, &self.threads(scenario, WARM_UP).await)
            .await;
        let mut batches = Vec::new();
        for _ in 0..BATCHES {
            let threads = self.threads(scenario, RUNS).await;
            let calibration = calibration::cpu_time();
            let pid = self.process.pid().expect("a process");
            let metrics = Some(self.process.address());
            let meter = UsageMeter::start(pid, metrics).await.expect("a meter");
            self.run_all(scenario, &threads).await;
            let usage = meter.finish().await.expect("usage");
            batches.push(Costs::of(&usage, calibration));
        }
        batches
    }

    /// Makes threads with the messages of the scenario.
    async fn threads(&self, scenario: Scenario, number: usize) -> Vec<String> {
        let mut threads = Vec::new();
        for _ in 0..number {
            let thread = self.post("/api/threads", &json!({})).await;
            let thread: Value = serde_json::from_str(&thread).expect("a thread");
            let id = thread["thread_id"].as_str().expect("an id").to_owned();
            let messages: Vec<Value> = (0..scenario.messages())
                .map(|place| json!({ "type": "human", "content": format!("message {place}") }))
                .collect();
            if !messages.is_empty() {
                let update = json!({ "values": { "messages": messages } });
                self.post(&format!("/api/threads/{id}/state"), &update)
                    .await;
            }
            threads.push(id);
        }
        threads
    }

    async fn run_all(&self, scenario: Scenario, threads: &[String]) {
        let message = json!({ "type": "human", "content": scenario.prompt() });
        let body = json!({
            "assistant_id": "lead_agent",
            "input": { "messages": [message] },
            "stream_mode": ["messages-tuple"],
            "on_disconnect": "continue",
        });
        for thread in threads {
            let stream = self
                .post(&format!("/api/threads/{thread}/runs/stream"), &body)
                .await;
            assert!(stream.contains("event: end"), "{stream}");
        }
    }

    async fn post(&self, path: &str, body: &Value) -> String {
        let url = format!("{}{path}", self.process.base_url());
        let answer = self.client.post(url).json(body).send().await;
        let answer = answer.and_then(reqwest::Response::error_for_status);
        let text = answer.expect("an answer").text().await;
        text.expect("a text")
    }
}

impl Costs {
    fn of(usage: &Usage, calibration: Duration) -> Self {
        let runs = RUNS as f64;
        let per_run = |sum: u64| sum as f64 / runs;
        let counted = |sum: Option<u64>| per_run(sum.expect("a counter of debug builds"));
        Self {
            cpu: usage.cpu.as_secs_f64() / runs / calibration.as_secs_f64(),
            switches: per_run(usage.switches),
            written: per_run(usage.written),
            allocations: counted(usage.allocations),
            writes: counted(usage.writes),
        }
    }
}

/// Returns a configuration without model calls besides those of the run.
fn configuration(model: &str) -> String {
    format!(
        "\
log_level: warning
models:
  - name: scripted
    use: langchain_openai:ChatOpenAI
    model: scripted
    base_url: {model}
    api_key: dummy
sandbox: {{use: local}}
database: {{backend: sqlite, sqlite_dir: .deer-flow/data}}
run_events: {{backend: db}}
title: {{enabled: false}}
memory: {{debounce_seconds: 86400}}
"
    )
}
