//! `deerflow mcp` as its clients meet it: the real binary over its standard streams.
#![expect(
    deprecated,
    reason = "log messages are on their way out of the protocol, and what clients show today"
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

/// How long anything that is waited for may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// An answer that does not end before the test lets it.
const HELD: &str = "[[slow 40x1ms]][[hold 3]] on and on";

/// The process, its data and its model.
struct Server {
    child: Child,
    home: TempDir,
    model: ScriptedOpenAi,
}

/// Calls of `write_todos` need a person's yes.
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

    /// Ends the input and waits for the end of the process.
    async fn ended(&mut self) -> ExitStatus {
        drop(self.child.stdin.take());
        timeout(PATIENCE, self.child.wait())
            .await
            .expect("it ends with its input")
            .expect("a status")
    }

    async fn client(&mut self) -> (Client, Heard) {
        self.client_of(None).await
    }

    /// A client whose person answers each form with this, or cannot be asked.
    async fn client_of(&mut self, person: Option<ElicitResult>) -> (Client, Heard) {
        let (input, output) = (
            self.child.stdin.take().expect("input"),
            self.child.stdout.take().expect("output"),
        );
        let (progress, progressed) = mpsc::unbounded_channel();
        let (logs, logged) = mpsc::unbounded_channel();
        let link = AsyncRwTransport::new_client(output, input);
        let (forms, asked) = mpsc::unbounded_channel();
        let ears = Ears {
            progress,
            logs,
            person,
            forms,
        };
        let client = timeout(PATIENCE, serve_client(ears, link))
            .await
            .expect("in time")
            .expect("greeted");
        (
            Client(client),
            Heard {
                progressed,
                logged,
                asked,
            },
        )
    }

    /// The streams as they are, for what no decent client says.
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

/// The program on these data; its last argument is the path of the configuration.
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

/// Passes on what is heard.
struct Ears {
    progress: mpsc::UnboundedSender<ProgressNotificationParam>,
    logs: mpsc::UnboundedSender<Value>,
    forms: mpsc::UnboundedSender<Value>,
    person: Option<ElicitResult>,
}

impl ClientHandler for Ears {
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
        Ok(self.person.clone().expect("somebody to ask"))
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

struct Heard {
    progressed: mpsc::UnboundedReceiver<ProgressNotificationParam>,
    logged: mpsc::UnboundedReceiver<Value>,
    asked: mpsc::UnboundedReceiver<Value>,
}

impl Heard {
    /// Waits until the run of a call is said to write its answer.
    async fn writing(&mut self, call: &RequestHandle<RoleClient>) {
        let heard = async {
            while let Some(progress) = self.progressed.recv().await {
                if progress.progress_token == call.progress_token
                    && progress.message.as_deref() == Some("the agent writes")
                {
                    return;
                }
            }
            panic!("nobody tells any more");
        };
        timeout(PATIENCE, heard).await.expect("never heard of it");
    }
}

struct Client(RunningService<RoleClient, Ears>);

fn call(tool: &'static str, arguments: Value) -> CallToolRequestParams {
    CallToolRequestParams::new(tool)
        .with_arguments(arguments.as_object().expect("an object").clone())
}

impl Client {
    async fn call(&self, tool: &'static str, arguments: Value) -> CallToolResult {
        let answered = timeout(
            PATIENCE,
            self.0.peer().call_tool_once(call(tool, arguments)),
        )
        .await
        .expect("in time");
        match answered.expect("a result") {
            CallToolResponse::Complete(result) => result,
            other => panic!("no result: {other:?}"),
        }
    }

    /// Asks, and does not wait for the answer.
    async fn begun(&self, arguments: Value) -> RequestHandle<RoleClient> {
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(call("ask", arguments)));
        self.0
            .peer()
            .send_cancellable_request(request, PeerRequestOptions::no_options())
            .await
            .expect("sent")
    }

    /// Asks, and gives the structured answer.
    async fn ask(&self, arguments: Value) -> Value {
        let result = self.call("ask", arguments).await;
        assert_eq!(result.is_error, Some(false), "{result:?}");
        result.structured_content.expect("structured")
    }

    /// Calls in vain, and gives the reason.
    async fn refused(&self, tool: &'static str, arguments: Value) -> String {
        let result = self.call(tool, arguments).await;
        assert_eq!(result.is_error, Some(true), "{result:?}");
        words(&result)
    }
}

fn words(result: &CallToolResult) -> String {
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

    /// The next message, which is one.
    async fn read(&mut self) -> Value {
        let line = timeout(PATIENCE, self.lines.next_line())
            .await
            .expect("in time")
            .expect("read")
            .expect("a line");
        let message: Value =
            serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert_eq!(message["jsonrpc"], "2.0", "{line}");
        message
    }

    /// What is answered to this request.
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

    /// What is answered to this line.
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
async fn a_task_is_answered_and_its_conversation_goes_on() {
    let mut server = Server::start().await;
    let (client, mut heard) = server.client().await;
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
    let progress = timeout(PATIENCE, heard.progressed.recv())
        .await
        .expect("in time")
        .expect("progress");
    assert_eq!(
        (progress.progress, progress.message.as_deref()),
        (1.0, Some("the agent is at work"))
    );
    let mut told = Vec::new();
    while told.len() < 4 {
        let logged = timeout(PATIENCE, heard.logged.recv())
            .await
            .expect("in time")
            .expect("a log message");
        told.push((
            text(&logged["event"]).to_owned(),
            text(&logged["tool"]).to_owned(),
        ));
    }
    let told: Vec<(&str, &str)> = told
        .iter()
        .map(|(event, tool)| (event.as_str(), tool.as_str()))
        .collect();
    assert_eq!(
        told,
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
    assert_eq!(words(&file), "by the agent");
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
        words(&more).starts_with("More.\n") && words(&more).contains(text(thread)),
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
        "the agent remembers"
    );
}

#[tokio::test]
async fn a_question_of_the_agent_is_answered_on_its_thread() {
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
        asked.is_error == Some(false) && words(&asked).contains("Which colour?"),
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
async fn the_person_behind_a_client_decides_on_calls_that_need_leave() {
    let yes = || ElicitResult::new(ElicitationAction::Accept).with_content(json!({"allow": true}));
    for (said, allowed) in [
        (yes(), true),
        (ElicitResult::new(ElicitationAction::Decline), false),
    ] {
        let mut server = Server::configured(GUARDED).await;
        let (client, mut heard) = server.client_of(Some(said)).await;
        let answer = client.ask(json!({"message": r#"[[tool:write_todos {"todos": []}]] then say over"#, "plan": true})).await;
        assert_eq!(
            (&answer["text"], answer.get("waits_for")),
            (&json!("over"), None),
            "{answer}"
        );
        let form = heard.asked.try_recv().expect("a form");
        assert!(
            text(&form["message"]).contains(r#"leave to call write_todos with {"todos":[]}"#),
            "{form}"
        );
        assert_eq!(
            form["requestedSchema"]["properties"]["allow"]["type"], "boolean",
            "{form}"
        );
        assert!(heard.asked.try_recv().is_err(), "asked once");
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
async fn who_is_not_asked_finds_the_run_waiting_and_may_answer_elsewhere() {
    let closed = ElicitResult::new(ElicitationAction::Cancel);
    for person in [None, Some(closed)] {
        let mut server = Server::configured(GUARDED).await;
        let (client, _heard) = server.client_of(person).await;
        let result = client.call("ask", json!({"message": r#"[[tool:write_todos {"todos": []}]] then say over"#, "plan": true})).await;
        let told = words(&result);
        assert!(
            told.contains("is not done")
                && told.contains("leave to call write_todos")
                && !told.contains("over"),
            "{told}"
        );
        let shown = result.structured_content.expect("structured");
        assert_eq!(
            shown["waits_for"].as_array().map(Vec::len),
            Some(1),
            "{shown}"
        );
        client.0.cancel().await.expect("closed");
        assert!(
            timeout(PATIENCE, server.child.wait())
                .await
                .expect("it ends")
                .expect("a status")
                .success()
        );
        // The very command that the result names, asked as the question was.
        let named = told
            .split('`')
            .find_map(|words| words.strip_prefix("deerflow "))
            .expect("a command");
        let arguments: Vec<&str> = named.split(' ').chain(["--config"]).collect();
        assert!(
            arguments.contains(&"--plan") && arguments.contains(&text(&shown["thread_id"])),
            "{named}"
        );
        let mut chat = command(&server.home, &arguments);
        let done = timeout(PATIENCE, chat.output())
            .await
            .expect("in time")
            .expect("ended");
        let printed = String::from_utf8_lossy(&done.stdout).into_owned();
        assert!(
            done.status.success() && printed.ends_with("over\n"),
            "{printed}"
        );
    }
}

#[tokio::test]
async fn calls_go_side_by_side_but_not_on_one_thread() {
    let mut server = Server::start().await;
    let (client, mut heard) = server.client().await;
    let thread = client.ask(json!({"message": "then say begun"})).await["thread_id"].clone();
    let asking = client
        .begun(json!({"message": HELD, "thread_id": thread}))
        .await;
    heard.writing(&asking).await;
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
    let answered = timeout(PATIENCE, asking.await_response())
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
async fn a_call_that_is_cancelled_stops_its_run() {
    let mut server = Server::start().await;
    let (client, mut heard) = server.client().await;
    let thread = client.ask(json!({"message": "then say begun"})).await["thread_id"].clone();
    let asking = client
        .begun(json!({"message": HELD, "thread_id": thread}))
        .await;
    heard.writing(&asking).await;
    asking
        .cancel(Some("never mind".to_owned()))
        .await
        .expect("cancelled");
    // Nobody is answered who cancelled: that the thread is free again is what can be seen.
    until("the thread to be free", async || {
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
        "what was said stays: {messages}"
    );
}

#[tokio::test]
async fn who_goes_away_leaves_nothing_at_work() {
    let mut server = Server::start().await;
    let (client, mut heard) = server.client().await;
    let thread = client.ask(json!({"message": "then say begun"})).await["thread_id"].clone();
    let asking = client
        .begun(json!({"message": HELD, "thread_id": thread}))
        .await;
    heard.writing(&asking).await;
    // Closes the streams without a word.
    client.0.cancel().await.expect("closed");
    drop(asking);
    let status = timeout(PATIENCE, server.child.wait())
        .await
        .expect("it ends with its client")
        .expect("a status");
    assert!(status.success(), "{status}");
    server.child = run(&server.home);
    let (client, _heard) = server.client().await;
    let answer = client
        .ask(json!({"message": "then say after", "thread_id": thread}))
        .await;
    assert_eq!(
        answer["text"], "after",
        "nothing was left to be gone on with"
    );
}

#[tokio::test]
async fn what_goes_wrong_is_a_result_in_plain_words() {
    let mut server = Server::start().await;
    let (client, _heard) = server.client().await;
    for (tool, arguments, named) in [
        ("ask", json!({}), "message"),
        ("ask", json!({"message": ["no", "text"]}), "`message`"),
        ("ask", json!({"message": " "}), "empty"),
        ("ask", json!({"message": "x".repeat(2 << 20)}), "the most"),
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
async fn there_is_an_end_to_calls_at_once() {
    let mut server = Server::start().await;
    let (client, _heard) = server.client().await;
    let mut asked: FuturesUnordered<_> = (0..20)
        .map(|_| client.call("ask", json!({"message": HELD})))
        .collect();
    for _ in 0..4 {
        let refused = asked.next().await.expect("a result");
        assert!(
            refused.is_error == Some(true) && words(&refused).contains("16 calls already"),
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
async fn no_line_is_the_end_of_the_process() {
    let mut server = Server::start().await;
    let mut raw = server.raw();
    let null = Value::Null;
    // Before anybody was greeted, and after.
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
    // An unfinished line is no message.
    raw.input
        .write_all(br#"{"jsonrpc":"2.0","id":3,"method":"ping"}"#)
        .await
        .expect("written");
    drop(raw.input);
    assert_eq!(
        timeout(PATIENCE, raw.lines.next_line())
            .await
            .expect("in time")
            .expect("read"),
        None
    );
    assert!(server.ended().await.success());
}

#[tokio::test]
async fn a_start_that_fails_says_nothing_on_standard_output() {
    let home = tempfile::tempdir().expect("a home");
    std::fs::write(home.path().join("config.yaml"), "models: 5\n").expect("written");
    let mut child = run(&home);
    let mut printed = String::new();
    timeout(
        PATIENCE,
        child
            .stdout
            .take()
            .expect("output")
            .read_to_string(&mut printed),
    )
    .await
    .expect("in time")
    .expect("read");
    let status = timeout(PATIENCE, child.wait())
        .await
        .expect("in time")
        .expect("a status");
    assert_eq!((printed.as_str(), status.success()), ("", false));
}
