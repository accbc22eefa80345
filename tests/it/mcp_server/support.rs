//! The server process, and clients of it.

use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use deerflow_tests::gateway::deerflow_binary;
use deerflow_tests::scripted_openai::ScriptedOpenAi;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResponse, CallToolResult, ClientConfig,
    ClientRequest, ElicitRequestParams, ElicitResult, ElicitationCapability, ErrorData,
    LoggingMessageNotificationParam, ProgressNotificationParam,
};
use rmcp::service::{
    NotificationContext, PeerRequestOptions, RequestContext, RequestHandle, RunningService,
};
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::{ClientHandler, RoleClient, serve_client};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::rig::{config, strict_model};

/// Maximum time for any single wait.
pub(super) const TIMEOUT: Duration = Duration::from_secs(30);
/// Prompt of an answer that does not end before the test releases it.
pub(super) const HELD_PROMPT: &str = "[[slow 40x1ms]][[hold 3]] on and on";

/// The server process, its data folder and its model.
pub(super) struct Server {
    pub(super) child: Child,
    pub(super) home: TempDir,
    pub(super) model: ScriptedOpenAi,
}

/// Configuration in which calls of `write_todos` need approval.
pub(super) const GUARDED: &str = "guardrails: { enabled: true, provider: { use: rules, config: { rules: [{ tools: [write_todos], action: ask }] } } }\n";

impl Server {
    pub(super) async fn start() -> Self {
        Self::configured("").await
    }

    pub(super) async fn configured(sections: &str) -> Self {
        let (model, home) = (strict_model().await, tempfile::tempdir().expect("a home"));
        std::fs::write(
            home.path().join("config.yaml"),
            config(&model.base_url, sections),
        )
        .expect("written");
        let child = run(&home);
        Self { child, home, model }
    }

    /// Closes the input and waits for the end of the process.
    pub(super) async fn ended(&mut self) -> ExitStatus {
        drop(self.child.stdin.take());
        timeout(TIMEOUT, self.child.wait())
            .await
            .expect("the process ends with its input")
            .expect("a status")
    }

    pub(super) async fn client(&mut self) -> (Client, Notifications) {
        self.client_of(None).await
    }

    /// Connects a client whose user answers each form with `person`, or that does not support forms
    /// if it is `None`.
    pub(super) async fn client_of(
        &mut self,
        person: Option<ElicitResult>,
    ) -> (Client, Notifications) {
        let (input, output) = (
            self.child.stdin.take().expect("input"),
            self.child.stdout.take().expect("output"),
        );
        let (progress, progressed) = mpsc::unbounded_channel();
        let (logs, logged) = mpsc::unbounded_channel();
        let link = AsyncRwTransport::new_client(output, input);
        let (forms, asked) = mpsc::unbounded_channel();
        let ears = NotificationRecorder {
            progress,
            logs,
            person,
            forms,
        };
        let client = timeout(TIMEOUT, serve_client(ears, link))
            .await
            .expect("in time")
            .expect("greeted");
        (
            Client(client),
            Notifications {
                progressed,
                logged,
                asked,
            },
        )
    }

    /// Opens the raw streams, for input that a correct client does not send.
    pub(super) fn raw(&mut self) -> Raw {
        let (input, output) = (
            self.child.stdin.take().expect("input"),
            self.child.stdout.take().expect("output"),
        );
        Raw {
            input,
            lines: BufReader::new(output).lines(),
        }
    }
}

pub(super) fn run(home: &TempDir) -> Child {
    let mut command = command(home, &["mcp", "--config"]);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("started")
}

/// Builds the command for this home folder; its last argument is the path of the configuration.
pub(super) fn command(home: &TempDir, arguments: &[&str]) -> Command {
    let mut command = Command::new(deerflow_binary().expect("binary"));
    command
        .args(arguments)
        .arg(home.path().join("config.yaml"))
        .current_dir(home.path())
        .env("DEER_FLOW_PROJECT_ROOT", home.path())
        .env("DEER_FLOW_HOME", home.path().join(".deer-flow"))
        .env("NO_PROXY", "127.0.0.1")
        .kill_on_drop(true);
    command
}

/// Forwards received notifications to channels.
pub(super) struct NotificationRecorder {
    progress: mpsc::UnboundedSender<ProgressNotificationParam>,
    logs: mpsc::UnboundedSender<Value>,
    forms: mpsc::UnboundedSender<Value>,
    person: Option<ElicitResult>,
}

impl ClientHandler for NotificationRecorder {
    fn get_info(&self) -> ClientConfig {
        let mut info = ClientConfig::default();
        info.capabilities.elicitation = self.person.is_some().then(ElicitationCapability::default);
        info
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        _ = self.forms.send(json!(request));
        Ok(self.person.clone().expect("a client that supports forms"))
    }

    async fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        _ = self.progress.send(params);
    }

    async fn on_logging_message(
        &self,
        params: LoggingMessageNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        _ = self.logs.send(params.data);
    }
}

pub(super) struct Notifications {
    pub(super) progressed: mpsc::UnboundedReceiver<ProgressNotificationParam>,
    pub(super) logged: mpsc::UnboundedReceiver<Value>,
    pub(super) asked: mpsc::UnboundedReceiver<Value>,
}

impl Notifications {
    /// Waits until a progress notification reports that the run of a call writes its answer.
    pub(super) async fn writing(&mut self, call: &RequestHandle<RoleClient>) {
        let notifications = async {
            while let Some(progress) = self.progressed.recv().await {
                if progress.progress_token == call.progress_token
                    && progress.message.as_deref() == Some("the agent is writing")
                {
                    return;
                }
            }
            panic!("the notification channel is open");
        };
        timeout(TIMEOUT, notifications)
            .await
            .expect("unknown progress token");
    }
}

pub(super) struct Client(pub(super) RunningService<RoleClient, NotificationRecorder>);

pub(super) fn call(tool: &'static str, arguments: Value) -> CallToolRequestParams {
    CallToolRequestParams::new(tool)
        .with_arguments(arguments.as_object().expect("an object").clone())
}

impl Client {
    pub(super) async fn call(&self, tool: &'static str, arguments: Value) -> CallToolResult {
        let answered = timeout(TIMEOUT, self.0.peer().call_tool_once(call(tool, arguments)))
            .await
            .expect("in time");
        match answered.expect("a result") {
            CallToolResponse::Complete(result) => result,
            other => panic!("no result: {other:?}"),
        }
    }

    /// Sends a question and does not wait for its answer.
    pub(super) async fn start_call(&self, arguments: Value) -> RequestHandle<RoleClient> {
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(call("ask", arguments)));
        self.0
            .peer()
            .send_cancellable_request(request, PeerRequestOptions::no_options())
            .await
            .expect("sent")
    }

    /// Sends a question and returns the structured answer.
    pub(super) async fn ask(&self, arguments: Value) -> Value {
        let result = self.call("ask", arguments).await;
        assert_eq!(result.is_error, Some(false), "{result:?}");
        result.structured_content.expect("structured")
    }

    /// Makes a call that must fail and returns the reason.
    pub(super) async fn refused(&self, tool: &'static str, arguments: Value) -> String {
        let result = self.call(tool, arguments).await;
        assert_eq!(result.is_error, Some(true), "{result:?}");
        message_text(&result)
    }
}

pub(super) fn message_text(result: &CallToolResult) -> String {
    result
        .content
        .iter()
        .filter_map(|block| Some(block.as_text()?.text.as_str()))
        .collect::<Vec<_>>()
        .join("\n")
}

pub(super) struct Raw {
    pub(super) input: ChildStdin,
    pub(super) lines: Lines<BufReader<ChildStdout>>,
}

impl Raw {
    pub(super) async fn write(&mut self, line: impl AsRef<[u8]>) {
        self.input.write_all(line.as_ref()).await.expect("written");
        self.input.write_all(b"\n").await.expect("written");
    }

    /// Reads the next message, which must exist.
    pub(super) async fn read(&mut self) -> Value {
        let line = timeout(TIMEOUT, self.lines.next_line())
            .await
            .expect("in time")
            .expect("read")
            .expect("a line");
        let message: Value =
            serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert_eq!(message["jsonrpc"], "2.0", "{line}");
        message
    }

    /// Sends a request and returns its result.
    pub(super) async fn ask(&mut self, id: u32, method: &str, params: Value) -> Value {
        self.write(
            json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string(),
        )
        .await;
        loop {
            let message = self.read().await;
            if message["id"] == id {
                return message;
            }
        }
    }

    /// Sends a line that must be rejected and returns the error's code and data.
    pub(super) async fn refused(&mut self, line: impl AsRef<[u8]>) -> (i64, Value) {
        self.write(line).await;
        let refusal = self.read().await;
        assert!(
            refusal["error"]["message"]
                .as_str()
                .is_some_and(|words| !words.is_empty()),
            "{refusal}"
        );
        (
            refusal["error"]["code"].as_i64().expect("a code"),
            refusal["id"].clone(),
        )
    }
}
