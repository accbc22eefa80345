//! Tests of todo lists: rejected lists, repeated lists, and completion reminders.

use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::agents::AgentBuilder;
use crate::agents::test_support::*;
use crate::messages::kwargs;
use crate::tools::builtins::WriteTodos;

fn list(statuses: [&str; 2]) -> Value {
    json!({"todos": [{"content": "one", "status": statuses[0]}, {"content": "two", "status": statuses[1]}]})
}

async fn output(replies: Vec<Reply>) -> (RunOutput, Arc<ReplayModel>) {
    let model = ReplayModel::new(replies);
    let agent = AgentBuilder::new(model.clone())
        .tool(WriteTodos)
        .middleware(TodoMiddleware)
        .build();
    (ask(&agent, "go").await, model)
}

#[tokio::test]
async fn completed_list_permits_final_answer() {
    let replies = vec![
        calls([("a", "write_todos", list(["in_progress", "pending"]))]),
        calls([("b", "write_todos", list(["completed"; 2]))]),
    ];
    let (output, model) = output([replies, vec![Reply::Say("done")]].concat()).await;
    assert_eq!(
        output.state().channel("todos"),
        Some(&list(["completed"; 2])["todos"])
    );
    assert_eq!(model.requests().len(), 3);
}

#[tokio::test]
async fn early_answer_is_sent_back_at_most_twice() {
    let (output, model) = output(vec![
        calls([("a", "write_todos", list(["completed", "pending"]))]),
        Reply::Say("that is all"),
    ])
    .await;
    assert!(output.outcome.is_ok());
    let requests = model.requests();
    assert_eq!(requests.len(), 4);
    let last = |at: usize| requests[at].messages.last().unwrap();
    assert_eq!(last(1).name.as_deref(), Some("write_todos"));
    for at in [2, 3] {
        let text = last(at).content.text();
        assert!(
            last(at).name.as_deref() == Some("todo_completion_reminder")
                && text.contains("- [ ] two")
                && !text.contains("] one"),
            "{text}"
        );
    }
    assert!(
        output
            .state()
            .messages()
            .iter()
            .all(|message| !message.flag(kwargs::HIDE_FROM_UI)),
        "reminders are for the request only"
    );
}

#[tokio::test]
async fn several_lists_at_once_are_rejected() {
    let twice = calls([
        ("a", "write_todos", list(["pending"; 2])),
        ("b", "write_todos", list(["completed"; 2])),
    ]);
    let (output, model) = output(vec![twice, Reply::Say("sorry")]).await;
    assert_eq!(model.requests().len(), 2);
    let texts = output.transcript();
    assert!(
        texts[2].starts_with("tool:Error: only one call")
            && texts[3].starts_with("tool:Error: only one call"),
        "{texts:?}"
    );
    assert_eq!(output.state().channel("todos"), None);
}

#[tokio::test]
async fn list_out_of_view_is_repeated_once() {
    let with = |statuses, messages: Vec<Message>| {
        let mut state = state_of(messages);
        state
            .apply(
                StateUpdate::channel("todos", list(statuses)["todos"].clone()),
                &crate::ids::SeededIds::new(5),
            )
            .unwrap();
        state
    };
    let open = ["in_progress", "pending"];
    let before = async |state: &ThreadState| {
        TodoMiddleware
            .before_model(state, &context(1).0)
            .await
            .unwrap()
            .update
    };
    let update = before(&with(open, vec![Message::human("summary")])).await;
    let [shown] = &update.messages[..] else {
        panic!("one reminder")
    };
    assert!(
        shown.flag(kwargs::HIDE_FROM_UI) && shown.content.text().contains("- [~] one\n- [ ] two")
    );
    assert!(
        before(&with(open, vec![Message::human("summary"), shown.clone()]))
            .await
            .is_empty()
    );
    assert!(
        before(&with(["completed"; 2], vec![Message::human("summary")]))
            .await
            .is_empty()
    );
    let mut malformed = state_of([Message::human("q")]);
    malformed
        .apply(
            StateUpdate::channel("todos", json!([{"content": 1}])),
            &crate::ids::SeededIds::new(5),
        )
        .unwrap();
    assert!(before(&malformed).await.is_empty());
}

#[tokio::test]
async fn summarized_list_is_repeated_and_requests_end_with_user_turn() {
    let ids = crate::ids::SeededIds::new(5);
    let written = vec![
        calls([("a", "write_todos", list(["in_progress", "pending"]))]),
        Reply::Say(""),
    ];
    let mut state = self::output(written).await.0.state().clone();
    state
        .apply(StateUpdate::messages([Message::human("go on")]), &ids)
        .unwrap();
    let cut = View::of(&state).cut_at(state.messages().len() - 1, "notes");
    state.apply(cut, &ids).unwrap();
    let model = ReplayModel::new([Reply::Say("that is all")]);
    let agent = AgentBuilder::new(model.clone())
        .tool(WriteTodos)
        .middleware(TodoMiddleware)
        .build();
    let output = run(&agent, fresh(state), |ctx| {
        ctx.ids = Arc::new(crate::ids::SeededIds::new(6))
    })
    .await;
    assert!(output.outcome.is_ok());
    let names: Vec<Vec<String>> = model
        .requests()
        .iter()
        .map(|request| {
            request
                .messages
                .iter()
                .filter_map(|message| message.name.clone())
                .collect()
        })
        .collect();
    assert_eq!(names[0], ["summary", "todo_reminder"]);
    assert_eq!(names.len(), 3);
    for request in &model.requests()[1..] {
        let last = request.messages.last().unwrap();
        let text = last.content.text();
        assert!(
            last.name.as_deref() == Some("todo_completion_reminder")
                && text.contains("- [~] one\n- [ ] two"),
            "{text}"
        );
    }
}

#[test]
fn answer_of_guard_or_framework_is_not_sent_back() {
    assert!(is_final(&Message::ai("done")));
    for key in [
        kwargs::ERROR_FALLBACK,
        kwargs::INCOMPLETE,
        kwargs::GUARD_STOP,
        "function_call",
    ] {
        assert!(!is_final(&Message::ai("x").with(|body| {
            body.additional_kwargs.insert(key.to_owned(), json!(true));
        })));
    }
}
