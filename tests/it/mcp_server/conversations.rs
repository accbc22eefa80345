//! Conversations: questions, clarifications and approvals on a thread.

use rmcp::model::{ElicitResult, ElicitationAction, LoggingLevel, SetLevelRequestParams};
use serde_json::json;
use tokio::time::timeout;

use super::support::{GUARDED, Server, TIMEOUT, command, message_text};
use crate::rig::text;

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
