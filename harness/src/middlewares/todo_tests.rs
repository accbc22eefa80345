//! Todo lists: what is refused, what is shown again, and how often an agent is sent back to its work.

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

async fn said(replies: Vec<Reply>) -> (Said, Arc<ReplayModel>) {
    let model = ReplayModel::new(replies);
    let agent = AgentBuilder::new(model.clone())
        .tool(WriteTodos)
        .middleware(TodoMiddleware)
        .build();
    (ask(&agent, "go").await, model)
}

#[tokio::test]
async fn the_list_is_in_the_state_and_a_done_one_lets_the_agent_answer() {
    let replies = vec![
        calls([("a", "write_todos", list(["in_progress", "pending"]))]),
        calls([("b", "write_todos", list(["completed"; 2]))]),
    ];
    let (said, model) = said([replies, vec![Reply::Say("done")]].concat()).await;
    assert_eq!(
        said.state().channel("todos"),
        Some(&list(["completed"; 2])["todos"])
    );
    assert_eq!(model.asked().len(), 3);
}

#[tokio::test]
async fn an_agent_that_answers_too_early_is_sent_back_twice_and_no_more() {
    let (said, model) = said(vec![
        calls([("a", "write_todos", list(["completed", "pending"]))]),
        Reply::Say("that is all"),
    ])
    .await;
    assert!(said.outcome.is_ok());
    let asked = model.asked();
    assert_eq!(asked.len(), 4);
    let last = |at: usize| asked[at].messages.last().unwrap();
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
        said.state()
            .messages()
            .iter()
            .all(|message| !message.flag(kwargs::HIDE_FROM_UI)),
        "reminders are for the request only"
    );
}

#[tokio::test]
async fn several_lists_at_once_are_all_refused() {
    let twice = calls([
        ("a", "write_todos", list(["pending"; 2])),
        ("b", "write_todos", list(["completed"; 2])),
    ]);
    let (said, model) = said(vec![twice, Reply::Say("sorry")]).await;
    assert_eq!(model.asked().len(), 2);
    let texts = said.transcript();
    assert!(
        texts[2].starts_with("tool:Error: only one call")
            && texts[3].starts_with("tool:Error: only one call"),
        "{texts:?}"
    );
    assert_eq!(said.state().channel("todos"), None);
}

#[tokio::test]
async fn a_list_that_is_out_of_sight_is_shown_again_once() {
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
    let mut odd = state_of([Message::human("q")]);
    odd.apply(
        StateUpdate::channel("todos", json!([{"content": 1}])),
        &crate::ids::SeededIds::new(5),
    )
    .unwrap();
    assert!(before(&odd).await.is_empty());
}

#[tokio::test]
async fn a_list_behind_a_summary_is_shown_again_and_every_request_ends_with_something_to_answer() {
    let ids = crate::ids::SeededIds::new(5);
    let written = vec![
        calls([("a", "write_todos", list(["in_progress", "pending"]))]),
        Reply::Say(""),
    ];
    let mut state = self::said(written).await.0.state().clone();
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
    let said = run(&agent, fresh(state), |ctx| {
        ctx.ids = Arc::new(crate::ids::SeededIds::new(6))
    })
    .await;
    assert!(said.outcome.is_ok());
    let names: Vec<Vec<String>> = model
        .asked()
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
    for request in &model.asked()[1..] {
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
fn an_answer_that_a_guard_or_the_framework_gave_is_not_sent_back() {
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
