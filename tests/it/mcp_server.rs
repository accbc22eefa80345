//! `deerflow mcp`: the real binary over its standard streams.
#![expect(
    deprecated,
    reason = "the protocol deprecates log messages, but today's clients display them"
)]

use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use deerflow_tests::gateway::deerflow_binary;
use deerflow_tests::scripted_openai::ScriptedOpenAi;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResponse, CallToolResult, ClientConfig,
    ClientRequest, ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationCapability,
    ErrorData, LoggingLevel, LoggingMessageNotificationParam, ProgressNotificationParam,
    SetLevelRequestParams,
};
use rmcp::service::{
    NotificationContext, PeerRequestOptions, RequestContext, RequestHandle, RunningService,
};
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::{ClientHandler, RoleClient, serve_client};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::rig::{CANARY, config, strict_model, text, until};

/// Maximum time for any single wait.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Prompt of an answer that does not end before the test releases it.
const HELD_PROMPT: &str = "[[slow 40x1ms]][[hold 3]] on and on";

/// The server process, its data folder and its model.
struct Server {
    child: Child,
    home: TempDir,
    model: ScriptedOpenAi,
}

/// Configuration in which calls of `write_todos` need approval.
const GUARDED: &str = "guardrails: { enabled: true, provider: { use: rules, config: { rules: [{ tools: [write_todos], action: ask }] } } }\n";

impl Server {
    async fn start() -> Self {
        Self::configured("").await
    }

    async fn configured(sections: &str) -> Self {
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
    async fn ended(&mut self) -> ExitStatus {
        drop(self.child.stdin.take());
        timeout(TIMEOUT, self.child.wait())
            .await
            .expect("the process ends with its input")
            .expect("a status")
    }

    async fn client(&mut self) -> (Client, Notifications) {
        self.client_of(None).await
    }

    /// Connects a client whose user answers each form with `person`, or that does not support forms
    /// if it is `None`.
    async fn client_of(&mut self, person: Option<ElicitResult>) -> (Client, Notifications) {
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
    fn raw(&mut self) -> Raw {
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

fn run(home: &TempDir) -> Child {
    let mut command = command(home, &["mcp", "--config"]);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("started")
}

/// Builds the command for this home folder; its last argument is the path of the configuration.
fn command(home: &TempDir, arguments: &[&str]) -> Command {
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
struct NotificationRecorder {
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

struct Notifications {
    progressed: mpsc::UnboundedReceiver<ProgressNotificationParam>,
    logged: mpsc::UnboundedReceiver<Value>,
    asked: mpsc::UnboundedReceiver<Value>,
}

impl Notifications {
    /// Waits until a progress notification reports that the run of a call writes its answer.
    async fn writing(&mut self, call: &RequestHandle<RoleClient>) {
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

struct Client(RunningService<RoleClient, NotificationRecorder>);

fn call(tool: &'static str, arguments: Value) -> CallToolRequestParams {
    CallToolRequestParams::new(tool)
        .with_arguments(arguments.as_object().expect("an object").clone())
}

impl Client {
    async fn call(&self, tool: &'static str, arguments: Value) -> CallToolResult {
        let answered = timeout(TIMEOUT, self.0.peer().call_tool_once(call(tool, arguments)))
            .await
            .expect("in time");
        match answered.expect("a result") {
            CallToolResponse::Complete(result) => result,
            other => panic!("no result: {other:?}"),
        }
    }

    /// Sends a question and does not wait for its answer.
    async fn start_call(&self, arguments: Value) -> RequestHandle<RoleClient> {
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(call("ask", arguments)));
        self.0
            .peer()
            .send_cancellable_request(request, PeerRequestOptions::no_options())
            .await
            .expect("sent")
    }

    /// Sends a question and returns the structured answer.
    async fn ask(&self, arguments: Value) -> Value {
        let result = self.call("ask", arguments).await;
        assert_eq!(result.is_error, Some(false), "{result:?}");
        result.structured_content.expect("structured")
    }

    /// Makes a call that must fail and returns the reason.
    async fn refused(&self, tool: &'static str, arguments: Value) -> String {
        let result = self.call(tool, arguments).await;
        assert_eq!(result.is_error, Some(true), "{result:?}");
        message_text(&result)
    }
}

fn message_text(result: &CallToolResult) -> String {
    result
        .content
        .iter()
        .filter_map(|block| Some(block.as_text()?.text.as_str()))
        .collect::<Vec<_>>()
        .join("\n")
}

struct Raw {
    input: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Raw {
    async fn write(&mut self, line: impl AsRef<[u8]>) {
        self.input.write_all(line.as_ref()).await.expect("written");
        self.input.write_all(b"\n").await.expect("written");
    }

    /// Reads the next message, which must exist.
    async fn read(&mut self) -> Value {
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
    async fn ask(&mut self, id: u32, method: &str, params: Value) -> Value {
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
    async fn refused(&mut self, line: impl AsRef<[u8]>) -> (i64, Value) {
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

#[tokio::test]
async fn task_is_answered_and_thread_continues() {
    let mut server = Server::start().await;
    let (client, mut notifications) = server.client().await;
    let tools = client.0.peer().list_all_tools().await.expect("tools");
    assert_eq!(
        tools
            .iter()
            .map(|tool| tool.name.as_ref())
            .collect::<Vec<_>>(),
        ["ask", "read_artifact"]
    );
    client
        .0
        .peer()
        .set_level(SetLevelRequestParams::new(LoggingLevel::Info))
        .await
        .expect("a level");

    let write =
        r#"[[tool:write_file {"path": "/mnt/user-data/outputs/a.md", "content": "by the agent"}]]"#;
    let present = r#"[[tool:present_files {"filepaths": ["/mnt/user-data/outputs/a.md"]}]]"#;
    let answer = client
        .ask(json!({"message": format!("{write} {present} then say It is written.")}))
        .await;
    assert_eq!(
        (&answer["text"], &answer["artifacts"]),
        (
            &json!("It is written."),
            &json!(["/mnt/user-data/outputs/a.md"])
        )
    );
    assert!(
        answer["usage"]["total_tokens"].as_u64() > Some(0) && answer.get("question").is_none(),
        "{answer}"
    );
    let progress = timeout(TIMEOUT, notifications.progressed.recv())
        .await
        .expect("in time")
        .expect("progress");
    assert_eq!(
        (progress.progress, progress.message.as_deref()),
        (1.0, Some("the agent is working"))
    );
    let mut actual = Vec::new();
    while actual.len() < 4 {
        let logged = timeout(TIMEOUT, notifications.logged.recv())
            .await
            .expect("in time")
            .expect("a log message");
        actual.push((
            text(&logged["event"]).to_owned(),
            text(&logged["tool"]).to_owned(),
        ));
    }
    let actual: Vec<(&str, &str)> = actual
        .iter()
        .map(|(event, tool)| (event.as_str(), tool.as_str()))
        .collect();
    assert_eq!(
        actual,
        [
            ("call", "write_file"),
            ("result", "write_file"),
            ("call", "present_files"),
            ("result", "present_files")
        ]
    );

    let thread = &answer["thread_id"];
    let file = client
        .call(
            "read_artifact",
            json!({"thread_id": thread, "path": answer["artifacts"][0]}),
        )
        .await;
    assert_eq!(message_text(&file), "by the agent");
    let more = client
        .call(
            "ask",
            json!({"message": "then say More.", "thread_id": thread}),
        )
        .await;
    let shown = more.structured_content.clone().expect("structured");
    assert_eq!(
        (&shown["text"], &shown["thread_id"]),
        (&json!("More."), thread)
    );
    assert!(
        message_text(&more).starts_with("More.\n") && message_text(&more).contains(text(thread)),
        "{more:?}"
    );
    let asked = server
        .model
        .requests()
        .into_iter()
        .rev()
        .find(|request| !request.tools.is_empty())
        .expect("a request");
    assert!(
        json!(asked.messages).to_string().contains("It is written."),
        "the thread has the earlier messages"
    );
}

#[tokio::test]
async fn clarification_is_answered_on_its_thread() {
    let mut server = Server::start().await;
    let (client, _heard) = server.client().await;
    let question = json!({"question": "Which colour?", "clarification_type": "missing_info", "options": ["red", "blue"]});
    let asked = client
        .call(
            "ask",
            json!({"message": format!("[[tool:ask_clarification {question}]]")}),
        )
        .await;
    assert!(
        asked.is_error == Some(false) && message_text(&asked).contains("Which colour?"),
        "{asked:?}"
    );
    let shown = asked.structured_content.expect("structured");
    assert!(text(&shown["question"]).contains("blue"), "{shown}");
    let answered = client
        .ask(json!({"message": "blue, then say Blue it is.", "thread_id": shown["thread_id"]}))
        .await;
    assert_eq!(answered["text"], "Blue it is.");
}

#[tokio::test]
async fn client_user_decides_on_calls_that_need_approval() {
    let yes = || ElicitResult::new(ElicitationAction::Accept).with_content(json!({"allow": true}));
    for (actual_text, allowed) in [
        (yes(), true),
        (ElicitResult::new(ElicitationAction::Decline), false),
    ] {
        let mut server = Server::configured(GUARDED).await;
        let (client, mut notifications) = server.client_of(Some(actual_text)).await;
        let answer = client.ask(json!({"message": r#"[[tool:write_todos {"todos": []}]] then say over"#, "plan": true})).await;
        assert_eq!(
            (&answer["text"], answer.get("waits_for")),
            (&json!("over"), None),
            "{answer}"
        );
        let form = notifications.asked.try_recv().expect("a form");
        assert!(
            text(&form["message"]).contains(r#"approval to call write_todos with {"todos":[]}"#),
            "{form}"
        );
        assert_eq!(
            form["requestedSchema"]["properties"]["allow"]["type"], "boolean",
            "{form}"
        );
        assert!(notifications.asked.try_recv().is_err(), "asked once");
        let last = server
            .model
            .requests()
            .into_iter()
            .rev()
            .find(|request| !request.tools.is_empty())
            .expect("a request");
        assert_eq!(
            !json!(last.messages)
                .to_string()
                .contains("approval.rejected"),
            allowed,
            "{:?}",
            last.messages
        );
    }
}

#[tokio::test]
async fn run_waits_for_approval_if_client_cannot_elicit() {
    let closed = ElicitResult::new(ElicitationAction::Cancel);
    for person in [None, Some(closed)] {
        let mut server = Server::configured(GUARDED).await;
        let (client, _heard) = server.client_of(person).await;
        let result = client.call("ask", json!({"message": r#"[[tool:write_todos {"todos": []}]] then say over"#, "plan": true})).await;
        let actual = message_text(&result);
        assert!(
            actual.contains("is not done")
                && actual.contains("approval to call write_todos")
                && !actual.contains("over"),
            "{actual}"
        );
        let shown = result.structured_content.expect("structured");
        assert_eq!(
            shown["waits_for"].as_array().map(Vec::len),
            Some(1),
            "{shown}"
        );
        client.0.cancel().await.expect("closed");
        assert!(
            timeout(TIMEOUT, server.child.wait())
                .await
                .expect("the run ends")
                .expect("a status")
                .success()
        );
        // Runs exactly the command that the result names.
        let named = actual
            .split('`')
            .find_map(|words| words.strip_prefix("deerflow "))
            .expect("a command");
        let arguments: Vec<&str> = named.split(' ').chain(["--config"]).collect();
        assert!(
            arguments.contains(&"--plan") && arguments.contains(&text(&shown["thread_id"])),
            "{named}"
        );
        let mut chat = command(&server.home, &arguments);
        let finished = timeout(TIMEOUT, chat.output())
            .await
            .expect("in time")
            .expect("ended");
        let printed = String::from_utf8_lossy(&finished.stdout).into_owned();
        assert!(
            finished.status.success() && printed.ends_with("over\n"),
            "{printed}"
        );
    }
}

#[tokio::test]
async fn calls_run_concurrently_but_not_on_one_thread() {
    let mut server = Server::start().await;
    let (client, mut notifications) = server.client().await;
    let thread = client.ask(json!({"message": "then say begun"})).await["thread_id"].clone();
    let pending_call = client
        .start_call(json!({"message": HELD_PROMPT, "thread_id": thread}))
        .await;
    notifications.writing(&pending_call).await;
    let busy = client
        .refused(
            "ask",
            json!({"message": "then say no", "thread_id": thread}),
        )
        .await;
    assert!(busy.contains("still works on thread"), "{busy}");
    assert_eq!(
        client.ask(json!({"message": "then say beside"})).await["text"],
        "beside"
    );
    server.model.release();
    let answered = timeout(TIMEOUT, pending_call.await_response())
        .await
        .expect("in time")
        .expect("an answer");
    let answered = json!(answered);
    assert!(
        text(&answered["structuredContent"]["text"]).starts_with("tok0 "),
        "{answered}"
    );
}

#[tokio::test]
async fn cancelled_call_stops_its_run() {
    let mut server = Server::start().await;
    let (client, mut notifications) = server.client().await;
    let thread = client.ask(json!({"message": "then say begun"})).await["thread_id"].clone();
    let pending_call = client
        .start_call(json!({"message": HELD_PROMPT, "thread_id": thread}))
        .await;
    notifications.writing(&pending_call).await;
    pending_call
        .cancel(Some("never mind".to_owned()))
        .await
        .expect("cancelled");
    // A cancelled call gets no response: the only visible effect is that the thread becomes free.
    until("a free thread", async || {
        let result = client
            .call(
                "ask",
                json!({"message": "then say after", "thread_id": thread}),
            )
            .await;
        (result.is_error == Some(false)).then_some(())
    })
    .await;
    let asked = server
        .model
        .requests()
        .into_iter()
        .rev()
        .find(|request| !request.tools.is_empty())
        .expect("a request");
    let messages = json!(asked.messages).to_string();
    assert!(
        messages.contains("tok0") && !messages.contains("tok39"),
        "the streamed text stays: {messages}"
    );
}

#[tokio::test]
async fn disconnected_client_leaves_no_active_run() {
    let mut server = Server::start().await;
    let (client, mut notifications) = server.client().await;
    let thread = client.ask(json!({"message": "then say begun"})).await["thread_id"].clone();
    let pending_call = client
        .start_call(json!({"message": HELD_PROMPT, "thread_id": thread}))
        .await;
    notifications.writing(&pending_call).await;
    // Closes the streams without a protocol message.
    client.0.cancel().await.expect("closed");
    drop(pending_call);
    let status = timeout(TIMEOUT, server.child.wait())
        .await
        .expect("the process ends with its client")
        .expect("a status");
    assert!(status.success(), "{status}");
    server.child = run(&server.home);
    let (client, _heard) = server.client().await;
    let answer = client
        .ask(json!({"message": "then say after", "thread_id": thread}))
        .await;
    assert_eq!(answer["text"], "after", "no interrupted run was resumed");
}

#[tokio::test]
async fn failure_is_returned_as_readable_result() {
    let mut server = Server::start().await;
    let (client, _heard) = server.client().await;
    for (tool, arguments, named) in [
        ("ask", json!({}), "message"),
        ("ask", json!({"message": ["no", "text"]}), "`message`"),
        ("ask", json!({"message": " "}), "empty"),
        (
            "ask",
            json!({"message": "x".repeat(2 << 20)}),
            "the maximum",
        ),
        (
            "ask",
            json!({"message": "x", "temperature": 1}),
            "temperature",
        ),
        (
            "ask",
            json!({"message": "x", "thread_id": "../x"}),
            "thread_id",
        ),
        (
            "ask",
            json!({"message": "x", "thread_id": "made-up"}),
            "no thread made-up",
        ),
        (
            "ask",
            json!({"message": "x", "model": "no-such-model"}),
            "no-such-model",
        ),
        (
            "read_artifact",
            json!({"thread_id": "made-up", "path": "/mnt/user-data/outputs/a"}),
            "no thread",
        ),
    ] {
        let problem = client.refused(tool, arguments).await;
        assert!(problem.contains(named), "{named}: {problem}");
    }
    let failed = client
        .refused("ask", json!({"message": "[[error 400]]"}))
        .await;
    assert!(!failed.contains(CANARY), "{failed}");
    let thread = client.ask(json!({"message": "then say fine"})).await["thread_id"].clone();
    for path in [
        "/etc/passwd",
        "/mnt/user-data/../../etc/passwd",
        "/mnt/user-data/outputs/none",
        "",
        "a\u{0}b",
    ] {
        let problem = client
            .refused("read_artifact", json!({"thread_id": thread, "path": path}))
            .await;
        assert!(!problem.contains(".deer-flow"), "{problem}");
    }
    let unknown = client
        .0
        .peer()
        .call_tool_once(call("format_disk", json!({})))
        .await
        .expect_err("no tool");
    assert!(unknown.to_string().contains("format_disk"), "{unknown}");
}

#[tokio::test]
async fn concurrent_calls_are_limited() {
    let mut server = Server::start().await;
    let (client, _heard) = server.client().await;
    let mut asked: FuturesUnordered<_> = (0..20)
        .map(|_| client.call("ask", json!({"message": HELD_PROMPT})))
        .collect();
    for _ in 0..4 {
        let refused = asked.next().await.expect("a result");
        assert!(
            refused.is_error == Some(true) && message_text(&refused).contains("16 calls already"),
            "{refused:?}"
        );
    }
    server.model.release();
    let answered: Vec<CallToolResult> = asked.collect().await;
    assert!(
        answered.len() == 16 && answered.iter().all(|result| result.is_error == Some(false)),
        "{answered:?}"
    );
}

#[tokio::test]
async fn malformed_lines_do_not_end_the_process() {
    let mut server = Server::start().await;
    let mut raw = server.raw();
    let null = Value::Null;
    // Once before and once after the initialization.
    for turn in 0..2 {
        assert_eq!(raw.refused("{broken").await, (-32700, null.clone()));
        assert_eq!(raw.refused(b"\xff\xfe\x00").await, (-32700, null.clone()));
        assert_eq!(
            raw.refused("[".repeat(200_000)).await,
            (-32700, null.clone())
        );
        assert_eq!(
            raw.refused(vec![b'x'; 9 << 20]).await,
            (-32600, null.clone())
        );
        assert_eq!(
            raw.refused(r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#)
                .await,
            (-32600, null.clone())
        );
        assert_eq!(
            raw.refused(r#"{"id":7,"method":"ping"}"#).await,
            (-32600, json!(7))
        );
        assert_eq!(
            raw.refused(r#"{"jsonrpc":"2.0","id":"a","method":"no/such"}"#)
                .await,
            (-32601, json!("a"))
        );
        assert_eq!(
            raw.refused(r#"{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":5}}"#)
                .await,
            (-32602, json!(8))
        );
        let wrong = r#"{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"ask","arguments":"text"}}"#;
        assert_eq!(raw.refused(wrong).await, (-32602, json!(9)));
        for unanswered in [
            "",
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99}}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled"}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/unknown","params":{}}"#,
            r#"{"jsonrpc":"2.0","id":55,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"x"}}"#,
        ] {
            raw.write(unanswered).await;
        }
        if turn == 0 {
            let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
            let greeted = raw.ask(1, "initialize", hello).await;
            assert_eq!(
                greeted["result"]["protocolVersion"], "2025-06-18",
                "{greeted}"
            );
            assert_eq!(greeted["result"]["serverInfo"]["name"], "deerflow");
            raw.write(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#)
                .await;
        }
    }
    let answer = raw
        .ask(
            2,
            "tools/call",
            json!({"name": "ask", "arguments": {"message": "then say fine"}}),
        )
        .await;
    assert_eq!(
        answer["result"]["structuredContent"]["text"], "fine",
        "{answer}"
    );
    // An unfinished line is not a message.
    raw.input
        .write_all(br#"{"jsonrpc":"2.0","id":3,"method":"ping"}"#)
        .await
        .expect("written");
    drop(raw.input);
    assert_eq!(
        timeout(TIMEOUT, raw.lines.next_line())
            .await
            .expect("in time")
            .expect("read"),
        None
    );
    assert!(server.ended().await.success());
}

#[tokio::test]
async fn failed_start_prints_nothing_on_standard_output() {
    let home = tempfile::tempdir().expect("a home");
    std::fs::write(home.path().join("config.yaml"), "models: 5\n").expect("written");
    let mut child = run(&home);
    let mut printed = String::new();
    timeout(
        TIMEOUT,
        child
            .stdout
            .take()
            .expect("output")
            .read_to_string(&mut printed),
    )
    .await
    .expect("in time")
    .expect("read");
    let status = timeout(TIMEOUT, child.wait())
        .await
        .expect("in time")
        .expect("a status");
    assert_eq!((printed.as_str(), status.success()), ("", false));
}
