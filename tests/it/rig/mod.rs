//! Test gateway with a scripted model, and an HTTP client with assertions on its responses.

pub(crate) mod browser;
mod messages;
mod response;

use std::time::{Duration, Instant};

use deerflow_tests::gateway::{AUTH_DISABLED, GatewayOptions, GatewayProcess};
use deerflow_tests::scripted_openai::{Options, ScriptedOpenAi};
use deerflow_tests::sse::SseStream;
use reqwest::Method;
use serde_json::{Value, json};

pub(crate) use self::messages::{
    body, body_with, list, message_text, messages_of, text, visible_messages,
};
pub(crate) use self::response::{FinishedRun, HttpResponse};

/// API key of the model's provider: it must never leave the gateway except in requests to the
/// provider.
pub(crate) const CANARY: &str = "sk-canary-4f9c1e77a0";

/// Name of the model entry.
pub(crate) const MODEL: &str = "fake";

/// Maximum time for any single wait.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Gateway that belongs to one test.
#[derive(Debug)]
pub(crate) struct Rig {
    pub(crate) gateway: GatewayProcess,
    pub(crate) model: ScriptedOpenAi,
    client: reqwest::Client,
}

impl Rig {
    /// Starts a gateway with the usual configuration.
    pub(crate) async fn start() -> Self {
        Self::with("").await
    }

    /// Starts a gateway whose configuration ends with `sections`.
    pub(crate) async fn with(sections: &str) -> Self {
        Self::in_environment(sections, &[]).await
    }

    /// Starts a gateway with these sections and additional environment variables.
    pub(crate) async fn in_environment(sections: &str, variables: &[(&str, &str)]) -> Self {
        Self::configured(|base_url| config(base_url, sections), variables).await
    }

    /// Starts a gateway that, when stopped, waits several minutes for its runs.
    pub(crate) async fn with_long_grace() -> Self {
        Self::configured(
            |base_url| config(base_url, "").replace("grace_seconds: 5", "grace_seconds: 300"),
            &[],
        )
        .await
    }

    /// Starts a gateway that expects its model at `base_url`, where no server may be.
    pub(crate) async fn with_model_at(base_url: &str) -> Self {
        Self::configured(|_| config(base_url, ""), &[]).await
    }

    /// Starts a gateway that fails a model call after one second without data.
    pub(crate) async fn with_stream_timeout(sections: &str) -> Self {
        let entry = "    stream_chunk_timeout: 1\n    base_url:";
        Self::configured(
            |base_url| config(base_url, sections).replace("    base_url:", entry),
            &[],
        )
        .await
    }

    /// Starts a gateway whose agent can run commands.
    pub(crate) async fn with_commands(sandbox: &str) -> Self {
        Self::with_commands_in(sandbox, &[]).await
    }

    /// Starts such a gateway with additional environment variables.
    pub(crate) async fn with_commands_in(sandbox: &str, variables: &[(&str, &str)]) -> Self {
        let with_bash = |base_url: &str| {
            let usual = config(base_url, "");
            usual.replace(
                "sandbox: {use: local}\n",
                &format!(
                    "  - {{name: bash, group: files, use: sandbox.bash}}\nsandbox: {sandbox}\n"
                ),
            )
        };
        Self::configured(with_bash, variables).await
    }

    /// Starts a gateway whose agent has additional tools, each a line of YAML, and whose
    /// configuration ends with `sections`.
    pub(crate) async fn with_tools(tools: &[String], sections: &str) -> Self {
        let entries: String = tools.iter().map(|tool| format!("  - {tool}\n")).collect();
        let with_tools = |base_url: &str| {
            config(base_url, sections).replace(
                "sandbox: {use: local}\n",
                &format!("{entries}sandbox: {{use: local}}\n"),
            )
        };
        Self::configured(with_tools, &[]).await
    }

    pub(crate) async fn configured(
        config: impl FnOnce(&str) -> String,
        variables: &[(&str, &str)],
    ) -> Self {
        let model = strict_model().await;
        let config = config(&model.base_url);
        let gateway = GatewayProcess::start(&config, &[&[AUTH_DISABLED], variables].concat())
            .await
            .expect("gateway");
        Self {
            gateway,
            model,
            client: client(),
        }
    }

    /// Starts a gateway with the options that `options` returns for the model's address.
    pub(crate) async fn launched(options: impl FnOnce(&str) -> GatewayOptions) -> Self {
        let model = strict_model().await;
        let mut options = options(&model.base_url);
        options
            .env
            .push((AUTH_DISABLED.0.to_owned(), AUTH_DISABLED.1.to_owned()));
        let gateway = GatewayProcess::launch(options).await.expect("gateway");
        Self {
            gateway,
            model,
            client: client(),
        }
    }

    /// Returns the URL of `path`.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.gateway.base_url())
    }

    /// Builds a request without sending it.
    pub(crate) fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        self.client.request(method, self.url(path))
    }

    pub(crate) async fn get(&self, path: &str) -> HttpResponse {
        HttpResponse::of(self.request(Method::GET, path)).await
    }

    pub(crate) async fn delete(&self, path: &str) -> HttpResponse {
        HttpResponse::of(self.request(Method::DELETE, path)).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> HttpResponse {
        HttpResponse::of(self.request(Method::POST, path).json(body)).await
    }

    pub(crate) async fn patch(&self, path: &str, body: &Value) -> HttpResponse {
        HttpResponse::of(self.request(Method::PATCH, path).json(body)).await
    }

    pub(crate) async fn put(&self, path: &str, body: &Value) -> HttpResponse {
        HttpResponse::of(self.request(Method::PUT, path).json(body)).await
    }

    /// Sends these bytes as a JSON body.
    pub(crate) async fn post_bytes(
        &self,
        path: &str,
        body: impl Into<reqwest::Body>,
    ) -> HttpResponse {
        HttpResponse::of(
            self.request(Method::POST, path)
                .header("content-type", "application/json")
                .body(body),
        )
        .await
    }

    /// Creates a thread and returns its id.
    pub(crate) async fn thread(&self) -> String {
        let thread = self
            .post("/api/threads", &json!({"metadata": {}}))
            .await
            .ok();
        text(&thread["thread_id"]).to_owned()
    }

    /// Starts a run without waiting for it and returns its id.
    pub(crate) async fn background(&self, thread: &str, body: &Value) -> String {
        let run = self
            .post(&format!("/api/threads/{thread}/runs"), body)
            .await
            .ok();
        text(&run["run_id"]).to_owned()
    }

    /// Starts a run and returns its stream.
    pub(crate) async fn stream(&self, thread: &str, body: &Value) -> SseStream {
        let request = self
            .request(Method::POST, &format!("/api/threads/{thread}/runs/stream"))
            .json(body);
        events(request.send().await.expect("answer")).await
    }

    /// Joins the stream of a run after `cursor`.
    pub(crate) async fn join(&self, thread: &str, run: &str, cursor: Option<&str>) -> SseStream {
        let mut request = self.request(
            Method::GET,
            &format!("/api/threads/{thread}/runs/{run}/stream"),
        );
        if let Some(cursor) = cursor {
            request = request.header("last-event-id", cursor);
        }
        events(request.send().await.expect("answer")).await
    }

    /// Runs to the end and collects all frames.
    pub(crate) async fn run(&self, thread: &str, body: &Value) -> FinishedRun {
        let stream = self.stream(thread, body).await;
        let headers = stream.response().headers().clone();
        let location = headers["content-location"].to_str().expect("text");
        let run = location
            .rsplit_once("/runs/")
            .expect("a run's address")
            .1
            .to_owned();
        let frames = stream.collect().await.expect("whole stream");
        FinishedRun {
            thread: thread.to_owned(),
            run,
            headers,
            frames,
        }
    }

    /// Runs `prompt` on a new thread to the end.
    pub(crate) async fn run_prompt(&self, prompt: &str) -> FinishedRun {
        let thread = self.thread().await;
        self.run(&thread, &body(prompt)).await
    }

    /// Returns a run as the API returns it.
    pub(crate) async fn get_run(&self, thread: &str, run: &str) -> Value {
        self.get(&format!("/api/threads/{thread}/runs/{run}"))
            .await
            .ok()
    }

    /// Waits for the end of a run and returns its status.
    pub(crate) async fn wait_for_end(&self, thread: &str, run: &str) -> String {
        until("end of the run", async || {
            let status = text(&self.get_run(thread, run).await["status"]).to_owned();
            (!matches!(status.as_str(), "pending" | "running")).then_some(status)
        })
        .await
    }

    /// Returns the values of a thread's newest state.
    pub(crate) async fn values(&self, thread: &str) -> Value {
        self.get(&format!("/api/threads/{thread}/state")).await.ok()["values"].clone()
    }

    /// Returns the visible messages of a thread's newest state as (type, text).
    pub(crate) async fn visible_messages(&self, thread: &str) -> Vec<(String, String)> {
        visible_messages(&self.values(thread).await)
    }
}

/// Prints the gateway's output if the test fails.
impl Drop for Rig {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the gateway printed:\n{}", self.gateway.logs());
        }
    }
}

/// Starts a model that rejects invalid message histories.
pub(crate) async fn strict_model() -> ScriptedOpenAi {
    ScriptedOpenAi::start(Options {
        port: 0,
        strict: true,
    })
    .await
    .expect("model")
}

/// Builds a client with a timeout and without connection pooling.
pub(crate) fn client() -> reqwest::Client {
    reqwest::Client::builder()
        .no_proxy()
        .pool_max_idle_per_host(0)
        .timeout(Duration::from_secs(60))
        .build()
        .expect("client")
}

/// Returns `config.yaml` for a provider at `base_url`.
pub(crate) fn config(base_url: &str, sections: &str) -> String {
    format!(
        "config_version: 34
models:
  - name: {MODEL}
    use: langchain_openai:ChatOpenAI
    model: scripted-1
    api_key: {CANARY}
    base_url: {base_url}
tool_groups: [{{name: files}}]
tools:
  - {{name: ls, group: files, use: sandbox.ls}}
  - {{name: read_file, group: files, use: sandbox.read_file}}
  - {{name: write_file, group: files, use: sandbox.write_file}}
sandbox: {{use: local}}
runs: {{shutdown_grace_seconds: 5}}
memory: {{enabled: false}}
llm_call: {{retry_base_delay_ms: 1, retry_cap_delay_ms: 2, burst_retry_base_delay_ms: 1}}
{sections}"
    )
}

/// Returns the frames of a response that is an event stream.
pub(crate) async fn events(response: reqwest::Response) -> SseStream {
    if response.status() != 200 {
        let status = response.status();
        panic!("{status}: {}", response.text().await.unwrap_or_default());
    }
    SseStream::new(response)
}

/// Polls until `ask` returns a value; panics after [`TIMEOUT`].
pub(crate) async fn until<T>(what: &str, mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(answer) = ask().await {
            return answer;
        }
        assert!(
            started.elapsed() < TIMEOUT,
            "timeout while waiting for {what}"
        );
        // The other side is a process and cannot notify this one.
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
