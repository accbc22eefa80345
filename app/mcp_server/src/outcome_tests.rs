//! Tests of results built from events.

use serde_json::json;

use super::*;

fn event(kind: &str, data: Value) -> StreamEvent {
    serde_json::from_value(json!({ "type": kind, "data": data })).unwrap()
}

fn answer(events: Vec<StreamEvent>) -> Answer {
    let mut outcome = Outcome::default();
    events.into_iter().for_each(|event| outcome.observe(event));
    outcome.answer(
        &ThreadId::parse("t").unwrap(),
        &RunId::parse("r").unwrap(),
        "approve t".to_owned(),
    )
}

fn texts(result: &CallToolResult) -> Vec<&str> {
    result
        .content
        .iter()
        .filter_map(|block| Some(block.as_text()?.text.as_str()))
        .collect()
}

#[test]
fn answer_is_last_text_of_turn_in_thread() {
    let messages = json!([
        { "type": "human", "content": "before" },
        { "type": "ai", "content": "an old answer" },
        { "type": "human", "content": "now" },
        { "type": "ai", "content": "I look.", "tool_calls": [] },
        { "type": "tool", "content": "seen" },
        { "type": "human", "content": "a reminder", "additional_kwargs": { "hide_from_ui": true } },
        { "type": "ai", "content": [{ "type": "thinking", "thinking": "hm" }, { "type": "text", "text": "It is " }, { "type": "text", "text": "green." }] },
        { "type": "ai", "content": " " },
    ]);
    let events = vec![
        event(
            "messages-tuple",
            json!({ "type": "ai", "id": "a", "content": "It is red." }),
        ),
        event(
            "values",
            json!({ "title": "Colours", "messages": messages, "artifacts": ["/mnt/user-data/outputs/a.md"] }),
        ),
        event(
            "end",
            json!({ "usage": { "input_tokens": 5, "output_tokens": 2, "total_tokens": 7 } }),
        ),
    ];
    let answer = answer(events);
    assert_eq!(answer.text, "It is green.");
    let result = answer.into_result();
    assert_eq!(texts(&result)[0], "It is green.");
    assert!(
        texts(&result)[1].contains("thread_id t.")
            && texts(&result)[1].contains("/mnt/user-data/outputs/a.md"),
        "{result:?}"
    );
    let structured = json!({
        "thread_id": "t", "run_id": "r", "text": "It is green.", "artifacts": ["/mnt/user-data/outputs/a.md"], "title": "Colours",
        "usage": { "input_tokens": 5, "output_tokens": 2, "total_tokens": 7 },
    });
    assert_eq!(
        (result.structured_content, result.is_error),
        (Some(structured), Some(false))
    );
}

#[test]
fn question_includes_how_to_answer() {
    let card = json!({ "type": "tool", "content": "Which?\n1. red", "artifact": { "human_input": { "kind": "human_input_request" } } });
    let state = json!({ "messages": [{ "type": "human", "content": "?" }, { "type": "ai", "content": "" }], "artifacts": null });
    let asked = answer(vec![
        event("messages-tuple", card.clone()),
        event("values", state),
    ]);
    assert_eq!(
        (asked.text.as_str(), asked.question.as_deref()),
        ("", Some("Which?\n1. red"))
    );
    let result = asked.into_result();
    let describe = texts(&result);
    assert!(
        describe[0].ends_with("Which?\n1. red")
            && describe[1].starts_with("[To answer, call ask with thread_id t."),
        "{describe:?}"
    );
    assert_eq!(result.is_error, Some(false));
    let words = event(
        "messages-tuple",
        json!({ "type": "ai", "id": "b", "content": "Never mind." }),
    );
    assert_eq!(
        answer(vec![event("messages-tuple", card), words]).question,
        None
    );
}

#[test]
fn waiting_run_is_no_answer_and_explains_approval() {
    let call =
        json!({ "name": "bash", "args": { "command": "rm a" }, "description": "it removes" });
    let end = |questions| {
        event(
            "end",
            json!({ "usage": { "input_tokens": 1, "output_tokens": 1, "total_tokens": 2 }, "questions": questions }),
        )
    };
    let waiting = end(json!([{ "id": "q", "value": { "action_requests": [call] } }]));
    let asked = answer(vec![waiting.clone()]);
    assert_eq!(
        asked.waits_for,
        [r#"approval to call bash with {"command":"rm a"}: it removes"#]
    );
    let result = asked.into_result();
    let describe = texts(&result);
    assert!(
        describe[0].starts_with(WAITING_NOTICE) && describe[0].ends_with("it removes"),
        "{describe:?}"
    );
    assert!(
        describe[1].contains("`approve t`") && describe.len() == 2,
        "{describe:?}"
    );
    let gone_on = answer(vec![waiting, end(json!([]))]);
    assert_eq!(
        (gone_on.waits_for.len(), gone_on.usage.total_tokens),
        (0, 4),
        "what both runs cost"
    );
}

#[test]
fn silent_run_is_reported() {
    let result = answer(Vec::new()).into_result();
    assert_eq!(texts(&result)[0], NO_ANSWER);
    assert_eq!(result.structured_content.unwrap()["text"], "");
}
