//! Tests of the terminal conversation.

use std::sync::Arc;

use harness::agents::{AgentBuilder, StaticResolver};
use harness::client::Installation;
use harness::ids::SeededIds;
use harness::middlewares::GuardrailMiddleware;
use harness::middlewares::guardrail::policy_of;
use harness::models::ScriptedModel;
use harness::runtime::in_memory::InMemoryStores;
use harness::runtime::runs::{RunLimits, RunsFacade};
use harness::tools::builtins::WriteTodos;

use super::*;

/// Client whose tool calls all need approval.
fn client() -> Client {
    let rules =
        serde_json::from_value(serde_json::json!({"use": "rules", "config": {"default": "ask"}}))
            .unwrap();
    let guard = GuardrailMiddleware::new(policy_of(Some(&rules)), true, None);
    let agent = AgentBuilder::new(Arc::new(ScriptedModel::default()))
        .tool(WriteTodos)
        .middleware(guard)
        .build();
    let stores = InMemoryStores::default();
    let parts = stores
        .clone()
        .runtime(Arc::new(StaticResolver::new().with_agent("agent", agent)))
        .unwrap();
    let installation = Installation {
        threads: Some(Arc::new(stores)),
        ..Installation::default()
    };
    Client::new(Arc::new(RunsFacade::new(parts, RunLimits::default())))
        .assistant("agent")
        .installation(installation)
}

/// Returns the output for a user who enters these lines.
async fn read(lines: &[&str], args: &ChatArgs, is_interactive: bool) -> (ExitCode, String) {
    read_of(client(), lines, args, is_interactive).await
}

/// Returns the output of a later session over the same installation.
async fn read_of(
    client: Client,
    lines: &[&str],
    args: &ChatArgs,
    is_interactive: bool,
) -> (ExitCode, String) {
    let (sender, lines_read) = mpsc::channel(lines.len().max(1));
    for line in lines {
        sender.try_send((*line).to_owned()).unwrap();
    }
    drop(sender);
    // A closed interrupt channel must not count as an interrupt.
    let (_, mut interrupts) = mpsc::channel(1);
    let ids = SeededIds::new(1);
    let thread = args
        .thread
        .clone()
        .unwrap_or_else(|| ThreadId::parse("first").unwrap());
    let mut chat = Chat {
        client,
        thread,
        ids: &ids,
        lines: lines_read,
        interrupts: &mut interrupts,
        is_interactive,
    };
    let mut out = Vec::new();
    let code = chat.run(args, &mut out).await.unwrap().into();
    (code, String::from_utf8(out).unwrap())
}

/// Interrupts the conversation this many times, as soon as there is output.
struct InterruptingOutput {
    stop: mpsc::Sender<()>,
    times: usize,
}

impl Write for InterruptingOutput {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        for _ in 0..std::mem::take(&mut self.times) {
            self.stop.try_send(()).unwrap();
        }
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn first_interrupt_cancels_and_second_returns_at_once() {
    for (times, ended) in [(1, ChatExit::Cancelled), (2, ChatExit::Aborted)] {
        let (stop, mut interrupts) = mpsc::channel(2);
        let ids = SeededIds::new(1);
        let mut chat = Chat {
            client: client(),
            thread: ThreadId::parse("first").unwrap(),
            ids: &ids,
            lines: mpsc::channel(1).1,
            interrupts: &mut interrupts,
            is_interactive: false,
        };
        let mut out = InterruptingOutput { stop, times };
        assert_eq!(
            chat.run(&args(&["[[slow 10000x10ms]] on and on"]), &mut out)
                .await
                .unwrap(),
            ended
        );
    }
}

#[tokio::test]
async fn late_interrupt_does_not_end_conversation() {
    let (sender, lines) = mpsc::channel(1);
    let (stop, mut interrupts) = mpsc::channel(2);
    let ids = SeededIds::new(1);
    let mut chat = Chat {
        client: client(),
        thread: ThreadId::parse("first").unwrap(),
        ids: &ids,
        lines,
        interrupts: &mut interrupts,
        is_interactive: false,
    };
    stop.try_send(()).unwrap();
    sender.try_send("then say still here".to_owned()).unwrap();
    drop(sender);
    let mut out = Vec::new();
    assert_eq!(
        chat.run(&args(&[]), &mut out).await.unwrap(),
        ChatExit::Success
    );
    assert_eq!(String::from_utf8(out).unwrap(), "still here\n");
}

fn args(message: &[&str]) -> ChatArgs {
    ChatArgs {
        message: message.iter().map(|word| (*word).to_owned()).collect(),
        recursion_limit: 100,
        ..ChatArgs::default()
    }
}

#[tokio::test]
async fn single_message_prints_answer_only() {
    assert_eq!(
        read(&[], &args(&["then say", "Good day"]), false).await,
        (ExitCode::SUCCESS, "Good day\n".to_owned())
    );
}

#[tokio::test]
async fn call_runs_only_after_approval() {
    let call = "[[tool:write_todos {\"todos\": []}]] then say over";
    for (answer, denied) in [("y", false), ("n", true), ("", true)] {
        let (code, printed) = read(&[call, answer], &args(&[]), true).await;
        assert_eq!(code, ExitCode::SUCCESS, "{printed}");
        assert!(
            printed.contains("? write_todos {\"todos\":[]}") && printed.contains("over\n"),
            "{printed}"
        );
        assert_eq!(
            printed.contains("denied by the guardrails"),
            denied,
            "{printed}"
        );
    }
    let (code, printed) = read(&[], &args(&[call]), false).await;
    assert_eq!(code, ExitCode::FAILURE, "{printed}");
    assert!(
        printed.contains("no answer given") && !printed.contains("over"),
        "{printed}"
    );
    let (code, printed) = read(
        &[],
        &ChatArgs {
            json: true,
            ..args(&[call])
        },
        false,
    )
    .await;
    let end: Value = serde_json::from_str(printed.lines().last().unwrap()).unwrap();
    assert_eq!(
        (
            code,
            &end["data"]["questions"][0]["value"]["action_requests"][0]["name"]
        ),
        (ExitCode::FAILURE, &json!("write_todos"))
    );
}

#[tokio::test]
async fn invalid_decision_is_asked_again() {
    let call = "[[tool:write_todos {\"todos\": []}]] then say over";
    let (code, printed) = read(&[call, "yes please", "YES"], &args(&[]), true).await;
    assert_eq!(code, ExitCode::SUCCESS, "{printed}");
    assert!(
        printed.contains("not understood: \"yes please\" is not a decision")
            && printed.contains("over\n"),
        "{printed}"
    );
    assert_eq!(
        (
            printed.matches("allow it?").count(),
            printed.contains("denied by")
        ),
        (2, false),
        "{printed}"
    );
    let edit = r#"{"type": "edit", "edited_action": {"name": "write_todos", "args": {"todos": [{"content": "rest", "status": "pending"}]}}}"#;
    let (_, printed) = read(&[call, edit], &args(&[]), true).await;
    assert!(
        printed.contains("the user changed this call") && printed.contains("over\n"),
        "{printed}"
    );
}

#[tokio::test]
async fn interrupt_stays_pending_across_sessions() {
    let client = client();
    let on = |thread| ChatArgs {
        thread: Some(ThreadId::parse(thread).unwrap()),
        ..args(&[])
    };
    let call = "[[tool:write_todos {\"todos\": []}]] then say over";
    for args in [
        ChatArgs {
            message: vec![call.to_owned()],
            ..on("first")
        },
        on("first"),
    ] {
        let (code, printed) = read_of(client.clone(), &[], &args, false).await;
        assert!(
            code == ExitCode::FAILURE
                && printed.contains("`deerflow chat --thread first --answer yes`"),
            "{printed}"
        );
    }
    let (code, printed) = read_of(
        client.clone(),
        &["then say elsewhere", "/resume first", "n"],
        &on("second"),
        true,
    )
    .await;
    assert!(
        code == ExitCode::SUCCESS && printed.find("elsewhere") < printed.find("allow it? [y/N]"),
        "{printed}"
    );
    assert!(
        printed.contains("denied by the guardrails") && printed.contains("over\n"),
        "{printed}"
    );
    let (_, printed) = read_of(client, &["then say again"], &on("first"), true).await;
    assert!(
        printed.contains("again") && !printed.contains("allow it?"),
        "{printed}"
    );
}

#[tokio::test]
async fn later_process_answers_pending_interrupt() {
    let call = "[[tool:write_todos {\"todos\": []}]] then say over";
    for (answer, denied) in [("yes", false), ("no", true)] {
        let client = client();
        read_of(client.clone(), &[], &args(&[call]), false).await;
        let args = ChatArgs {
            answer: true,
            ..args(&[answer])
        };
        let (code, printed) = read_of(client.clone(), &[], &args, true).await;
        assert_eq!(
            (code, printed.contains("denied by the guardrails")),
            (ExitCode::SUCCESS, denied),
            "{printed}"
        );
        assert!(
            printed.contains("over\n") && !printed.contains("allow it?"),
            "{printed}"
        );
        let ids = SeededIds::new(1);
        let (_, mut interrupts) = mpsc::channel(1);
        let thread = ThreadId::parse("first").unwrap();
        let mut chat = Chat {
            client,
            thread,
            ids: &ids,
            lines: mpsc::channel(1).1,
            interrupts: &mut interrupts,
            is_interactive: false,
        };
        let again = chat.run(&args, &mut Vec::new()).await.unwrap_err();
        assert!(
            again.to_string().contains("first has no pending question"),
            "{again}"
        );
    }
}

#[tokio::test]
async fn events_are_lines_of_json_when_asked() {
    let (_, printed) = read(
        &[],
        &ChatArgs {
            json: true,
            ..args(&["then say hi"])
        },
        false,
    )
    .await;
    let events: Vec<serde_json::Value> = printed
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(events.last().unwrap()["type"], "end");
    assert!(
        events
            .iter()
            .any(|event| event["type"] == "messages-tuple" && event["data"]["content"] == "hi"),
        "{printed}"
    );
}

#[tokio::test]
async fn conversation_continues_until_quit() {
    let lines = [
        "then say one",
        "",
        "/new",
        "then say two",
        "/quit",
        "then say three",
    ];
    let (code, printed) = read(&lines, &args(&[]), true).await;
    assert_eq!(code, ExitCode::SUCCESS);
    assert!(printed.starts_with("thread first;"), "{printed}");
    assert!(
        printed.contains("one\n") && printed.contains("two\n") && !printed.contains("three"),
        "{printed}"
    );
}

#[tokio::test]
async fn failed_question_is_reported_and_chat_continues() {
    let lines = ["/resume ../../etc", "then say still here"];
    let (_, printed) = read(&lines, &args(&[]), false).await;
    assert!(printed.contains("still here"), "{printed}");
}
