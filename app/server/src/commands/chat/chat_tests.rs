//! What a person at the terminal reads.

use std::sync::Arc;

use harness::agents::{AgentBuilder, StaticResolver};
use harness::client::Installation;
use harness::ids::SeededIds;
use harness::middlewares::GuardrailMiddleware;
use harness::middlewares::guardrail::policy_of;
use harness::models::ScriptedModel;
use harness::runtime::memory::MemoryStores;
use harness::runtime::runs::{RunLimits, RunsFacade};
use harness::tools::builtins::WriteTodos;

use super::*;

/// A client whose every call needs a yes.
fn client() -> Client {
    let rules =
        serde_json::from_value(serde_json::json!({"use": "rules", "config": {"default": "ask"}}))
            .unwrap();
    let guard = GuardrailMiddleware::new(policy_of(Some(&rules)), true, None);
    let agent = AgentBuilder::new(Arc::new(ScriptedModel::default()))
        .tool(WriteTodos)
        .middleware(guard)
        .build();
    let stores = MemoryStores::default();
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

/// What a person reads who writes these lines.
async fn read(lines: &[&str], args: &ChatArgs, watched: bool) -> (ExitCode, String) {
    read_of(client(), lines, args, watched).await
}

/// What the next one reads at the terminal, of the same installation.
async fn read_of(
    client: Client,
    lines: &[&str],
    args: &ChatArgs,
    watched: bool,
) -> (ExitCode, String) {
    let (said, lines_read) = mpsc::channel(lines.len().max(1));
    for line in lines {
        said.try_send((*line).to_owned()).unwrap();
    }
    drop(said);
    // Nobody can say stop, which is not the same as saying it.
    let (_, mut stops) = mpsc::channel(1);
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
        stops: &mut stops,
        watched,
    };
    let mut out = Vec::new();
    let code = chat.run(args, &mut out).await.unwrap().into();
    (code, String::from_utf8(out).unwrap())
}

/// Stops the conversation so often as soon as there is something to read.
struct Impatient {
    stop: mpsc::Sender<()>,
    times: usize,
}

impl Write for Impatient {
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
async fn who_stops_an_answer_once_gets_it_stopped_and_who_does_twice_is_not_kept_waiting() {
    for (times, ended) in [(1, Ended::Stopped), (2, Ended::AtOnce)] {
        let (stop, mut stops) = mpsc::channel(2);
        let ids = SeededIds::new(1);
        let mut chat = Chat {
            client: client(),
            thread: ThreadId::parse("first").unwrap(),
            ids: &ids,
            lines: mpsc::channel(1).1,
            stops: &mut stops,
            watched: false,
        };
        let mut out = Impatient { stop, times };
        assert_eq!(
            chat.run(&args(&["[[slow 10000x10ms]] on and on"]), &mut out)
                .await
                .unwrap(),
            ended
        );
    }
}

#[tokio::test]
async fn a_stop_that_came_too_late_does_not_end_the_conversation() {
    let (said, lines) = mpsc::channel(1);
    let (stop, mut stops) = mpsc::channel(2);
    let ids = SeededIds::new(1);
    let mut chat = Chat {
        client: client(),
        thread: ThreadId::parse("first").unwrap(),
        ids: &ids,
        lines,
        stops: &mut stops,
        watched: false,
    };
    stop.try_send(()).unwrap();
    said.try_send("then say still here".to_owned()).unwrap();
    drop(said);
    let mut out = Vec::new();
    assert_eq!(chat.run(&args(&[]), &mut out).await.unwrap(), Ended::Well);
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
async fn a_message_is_answered_and_nothing_else_is_printed() {
    assert_eq!(
        read(&[], &args(&["then say", "Good day"]), false).await,
        (ExitCode::SUCCESS, "Good day\n".to_owned())
    );
}

#[tokio::test]
async fn a_person_is_asked_about_a_call_and_it_is_made_after_a_yes_alone() {
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
        printed.contains("nobody answered") && !printed.contains("over"),
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
async fn a_line_that_decides_nothing_is_asked_again() {
    let call = "[[tool:write_todos {\"todos\": []}]] then say over";
    let (code, printed) = read(&[call, "yes please", "YES"], &args(&[]), true).await;
    assert_eq!(code, ExitCode::SUCCESS, "{printed}");
    assert!(
        printed.contains("not understood: \"yes please\" is no decision")
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
async fn a_question_stays_open_until_it_is_answered_from_wherever_one_comes_back() {
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
async fn a_program_answers_what_an_earlier_one_was_asked() {
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
        let (_, mut stops) = mpsc::channel(1);
        let thread = ThreadId::parse("first").unwrap();
        let mut chat = Chat {
            client,
            thread,
            ids: &ids,
            lines: mpsc::channel(1).1,
            stops: &mut stops,
            watched: false,
        };
        let again = chat.run(&args, &mut Vec::new()).await.unwrap_err();
        assert!(
            again.to_string().contains("first waits for no answer"),
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
async fn a_conversation_goes_on_until_the_person_quits() {
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
async fn a_question_that_cannot_be_asked_is_told_and_the_conversation_goes_on() {
    let lines = ["/resume ../../etc", "then say still here"];
    let (_, printed) = read(&lines, &args(&[]), false).await;
    assert!(printed.contains("still here"), "{printed}");
}
