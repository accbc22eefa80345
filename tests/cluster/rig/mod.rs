//! Cluster of gateways on one store with a scripted model, and requests to it.

mod figures;
mod reply;

use std::sync::Arc;
use std::time::{Duration, Instant};

use deerflow_tests::gateway::{AUTH_DISABLED, GatewayOptions, GatewayProcess, deerflow_binary};
use deerflow_tests::history::Recorder;
use deerflow_tests::scripted_openai::{Options, ScriptedOpenAi};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

pub(crate) use self::figures::{limit, measures_times, p99, spread};
pub(crate) use self::reply::{ScriptedReply, body, messages, text, words};

/// Maximum time for any single wait, including a takeover and the longest answer in these tests.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);

/// Default time that a stopping gateway waits for its runs.
const DEFAULT_GRACE: &str = "runs: {shutdown_grace_seconds: 3}\n";

/// Gateways on one store. Entries of `urls` and `nodes` with the same index belong together.
pub(crate) struct Cluster {
    pub(crate) nodes: Vec<GatewayProcess>,
    pub(crate) model: ScriptedOpenAi,
    pub(crate) gateways: Gateways,
    sections: String,
}

/// Addresses of the gateways, for tasks that outlive one of them.
#[derive(Debug, Clone)]
pub(crate) struct Gateways {
    pub(crate) client: reqwest::Client,
    pub(crate) urls: Arc<[String]>,
    pub(crate) history: Recorder,
}

impl Cluster {
    /// Starts this many gateways on a new schema of the Postgres server, with streams through
    /// Redis.
    pub(crate) async fn of(nodes: usize) -> Self {
        Self::with(nodes, &(on_postgres() + &through_redis())).await
    }

    /// Starts this many gateways whose configuration ends with `sections`.
    pub(crate) async fn with(count: usize, sections: &str) -> Self {
        Self::each(&vec![sections.to_owned(); count]).await
    }

    /// Starts one gateway per entry of `sections`, the end of its configuration.
    pub(crate) async fn each(sections: &[String]) -> Self {
        let all: Vec<_> = sections
            .iter()
            .map(|sections| (sections.as_str(), &[][..]))
            .collect();
        Self::started(&all).await
    }

    /// Starts one gateway per environment.
    pub(crate) async fn under(sections: &str, environments: &[Vec<(String, String)>]) -> Self {
        let all: Vec<_> = environments
            .iter()
            .map(|environment| (sections, &environment[..]))
            .collect();
        Self::started(&all).await
    }

    async fn started(all: &[(&str, &[(String, String)])]) -> Self {
        let model = ScriptedOpenAi::start(Options {
            port: 0,
            strict: true,
        })
        .await
        .expect("model");
        let mut nodes = Vec::new();
        for (sections, environment) in all {
            nodes.push(
                launch(&model.base_url, sections, environment)
                    .await
                    .expect("gateway"),
            );
        }
        let urls = nodes.iter().map(GatewayProcess::base_url).collect();
        let client = reqwest::Client::builder()
            .no_proxy()
            .pool_max_idle_per_host(0)
            .connect_timeout(Duration::from_secs(2));
        let gateways = Gateways {
            client: client.build().expect("client"),
            urls,
            history: history(),
        };
        Self {
            nodes,
            model,
            gateways,
            sections: all[0].0.to_owned(),
        }
    }

    /// Returns the store's section of the configuration, for another gateway on the same store.
    pub(crate) fn store(&self) -> String {
        self.sections
            .lines()
            .filter(|line| line.starts_with("database:"))
            .map(|line| format!("{line}\n"))
            .collect()
    }

    /// Freezes a gateway for a while.
    pub(crate) async fn pause(&self, node: usize, away: Duration) {
        self.nodes[node].freeze().expect("frozen");
        tokio::time::sleep(away).await;
        self.nodes[node].thaw().expect("thawed");
    }

    /// Kills a gateway and restarts it after a while.
    pub(crate) async fn cut(&mut self, node: usize, away: Duration) {
        self.nodes[node].kill9().await.expect("killed");
        tokio::time::sleep(away).await;
        self.nodes[node].restart().await.expect("healthy again");
    }
}

/// Prints the output of the gateways if the test fails.
impl Drop for Cluster {
    fn drop(&mut self) {
        if std::thread::panicking() {
            for (index, node) in self.nodes.iter().enumerate() {
                eprintln!("gateway {index} printed:\n{}", node.logs());
            }
        }
    }
}

/// Starts a gateway with additional environment variables; returns an error if it does not become
/// healthy.
pub(crate) async fn launch(
    base_url: &str,
    sections: &str,
    environment: &[(String, String)],
) -> anyhow::Result<GatewayProcess> {
    let grace = if sections.lines().any(|line| line.starts_with("runs:")) {
        ""
    } else {
        DEFAULT_GRACE
    };
    let config = format!(
        "config_version: 34
models:
  - {{name: fake, use: 'langchain_openai:ChatOpenAI', model: scripted-1, api_key: none, base_url: '{base_url}'}}
{grace}memory: {{enabled: false}}
title: {{enabled: false}}
tool_groups: [{{name: files}}]
tools: [{{name: ls, group: files, use: sandbox.ls}}, {{name: write_file, group: files, use: sandbox.write_file}}]
webhooks: {{allow_private: true}}
sandbox: {{use: local}}
{sections}"
    );
    let mut options = GatewayOptions::new(deerflow_binary()?, config);
    options.env = vec![(AUTH_DISABLED.0.to_owned(), AUTH_DISABLED.1.to_owned())];
    options.env.extend_from_slice(environment);
    options.stopped_within = Duration::from_secs(35);
    GatewayProcess::launch(options).await
}

/// Returns the history of this cluster, if histories are recorded.
fn history() -> Recorder {
    #[expect(
        clippy::disallowed_methods,
        reason = "tests have no configuration object"
    )]
    let Some(folder) = std::env::var_os("DEERFLOW_HISTORIES") else {
        return Recorder::default();
    };
    #[expect(
        clippy::disallowed_methods,
        reason = "histories of one test run must not overwrite each other"
    )]
    let name = uuid::Uuid::new_v4().to_string();
    Recorder::into_folder(folder.as_ref(), &name).expect("the folder of the histories exists")
}

/// Returns the value of an environment variable that `tests/cluster/run.sh` sets for its servers.
pub(crate) fn setting_of(name: &str) -> String {
    #[expect(
        clippy::disallowed_methods,
        reason = "tests have no configuration object"
    )]
    let value = std::env::var(name);
    value.unwrap_or_else(|_| {
        panic!("set {name} to a scratch server; tests/cluster/run.sh starts one")
    })
}

/// Returns the name of a new schema in the Postgres server.
pub(crate) fn new_schema() -> String {
    #[expect(
        clippy::disallowed_methods,
        reason = "schemas of one test run must differ from those of another"
    )]
    let id = uuid::Uuid::new_v4();
    format!("cluster_{}", id.simple())
}

/// Returns the configuration of a schema in the Postgres server.
pub(crate) fn on_schema(schema: &str) -> String {
    let url = setting_of("DEERFLOW_TEST_POSTGRES_URL");
    format!(
        "database: {{backend: postgres, postgres_url: '{url}', postgres_schema: {schema}, pool_size: 8}}\n"
    )
}

/// Returns the configuration of a new schema in the Postgres server.
pub(crate) fn on_postgres() -> String {
    on_schema(&new_schema())
}

pub(crate) fn through_redis() -> String {
    format!(
        "stream_bridge: {{type: redis, redis_url: '{}'}}\n",
        setting_of("DEERFLOW_TEST_REDIS_URL")
    )
}

impl Gateways {
    /// Sends a request to one gateway. Returns an error if the gateway is down.
    pub(crate) async fn try_ask(
        &self,
        node: usize,
        method: Method,
        path: &str,
        body: &Value,
    ) -> reqwest::Result<(StatusCode, Value)> {
        let mut request = self
            .client
            .request(method.clone(), format!("{}{path}", self.urls[node]))
            .timeout(TIMEOUT);
        if method != Method::GET {
            request = request.json(body);
        }
        let answer = request.send().await?;
        let status = answer.status();
        let text = answer.text().await?;
        Ok((
            status,
            serde_json::from_str(&text).unwrap_or(Value::String(text)),
        ))
    }

    /// Posts to a running gateway and returns the body of a successful response.
    pub(crate) async fn post(&self, node: usize, path: &str, body: &Value) -> Value {
        let (status, answer) = self
            .try_ask(node, Method::POST, path, body)
            .await
            .expect("answer");
        assert!(status.is_success(), "{path}: {status} {answer}");
        answer
    }

    /// Reads from a running gateway.
    pub(crate) async fn get(&self, node: usize, path: &str) -> Value {
        let (status, answer) = self
            .try_ask(node, Method::GET, path, &Value::Null)
            .await
            .expect("answer");
        assert_eq!(status, 200, "{path}: {answer}");
        answer
    }

    pub(crate) async fn thread(&self, node: usize) -> String {
        let thread = self.post(node, "/threads", &json!({})).await;
        text(&thread["thread_id"]).to_owned()
    }

    /// Starts a run without following it.
    pub(crate) async fn background(&self, node: usize, thread: &str, body: &Value) -> String {
        text(
            &self
                .post(node, &format!("/threads/{thread}/runs"), body)
                .await["run_id"],
        )
        .to_owned()
    }

    pub(crate) async fn run(&self, node: usize, thread: &str, run: &str) -> Value {
        let stored = self
            .get(node, &format!("/threads/{thread}/runs/{run}"))
            .await;
        self.history
            .write("read_run", json!({"run": run, "status": stored["status"]}));
        stored
    }

    /// Waits for the end of a run on a running gateway and returns it; `None` if it was rolled
    /// back.
    pub(crate) async fn ended(&self, node: usize, thread: &str, run: &str) -> Option<Value> {
        let started = Instant::now();
        loop {
            let path = format!("/threads/{thread}/runs/{run}");
            let (status, answer) = self
                .try_ask(node, Method::GET, &path, &Value::Null)
                .await
                .expect("answer");
            match status.as_u16() {
                404 => return None,
                200 if !matches!(text(&answer["status"]), "pending" | "running") => {
                    self.history
                        .write("read_run", json!({"run": run, "status": answer["status"]}));
                    return Some(answer);
                }
                200 => {}
                _ => panic!("{path}: {status} {answer}"),
            }
            assert!(
                started.elapsed() < TIMEOUT,
                "run {run} of thread {thread} does not end: {answer}"
            );
            // The other side is a process and cannot notify this one.
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Returns the messages of a thread as (type, text).
    pub(crate) async fn visible_messages(
        &self,
        node: usize,
        thread: &str,
    ) -> Vec<(String, String)> {
        let state = self.get(node, &format!("/threads/{thread}/state")).await;
        let transcript = state["values"]["messages"]
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default();
        let recorded = |message: &Value| json!({"type": message["type"], "id": message["id"], "text": words(message)});
        self.history.write(
            "read_thread",
            json!({"thread": thread, "messages": transcript.iter().map(recorded).collect::<Vec<_>>()}),
        );
        messages(&state["values"])
    }

    /// Asserts that a new run of a thread succeeds.
    pub(crate) async fn accepts_new_run(&self, node: usize, thread: &str) {
        let started = Instant::now();
        self.post(
            node,
            &format!("/threads/{thread}/runs/wait"),
            &body("then say on"),
        )
        .await;
        let took = started.elapsed();
        assert!(
            took < limit(Duration::from_secs(10)),
            "thread {thread} took {took:?} for a new run"
        );
        let transcript = self.visible_messages(node, thread).await;
        assert_eq!(
            transcript.last().map(|last| last.1.as_str()),
            Some("on"),
            "{thread}: {transcript:?}"
        );
    }
}
