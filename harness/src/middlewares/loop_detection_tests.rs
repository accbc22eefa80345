//! Tests of repetition detection: equal calls, the warning, and the end of the run.

use serde_json::json;

use super::*;
use crate::agents::test_support::{context, state_of};
use crate::messages::{MessageKind, ToolStatus, kwargs};

fn answer(calls: &[(&str, Value)]) -> Message {
    Message::ai("").with(|body| {
        body.response_metadata
            .insert("finish_reason".to_owned(), json!("tool_calls"));
        if let MessageKind::Ai { tool_calls, .. } = &mut body.kind {
            let call = |(at, (name, args)): (usize, &(&str, Value))| {
                ToolCall::new(format!("c{at}"), *name, args.as_object().cloned().unwrap())
            };
            *tool_calls = calls.iter().enumerate().map(call).collect();
        }
    })
}

fn round(calls: &[(&str, Value)]) -> Vec<Message> {
    let answer = answer(calls);
    let results = answer
        .tool_calls()
        .iter()
        .map(|call| Message::tool(call, "x", ToolStatus::Success))
        .collect::<Vec<_>>();
    [vec![answer], results].concat()
}

fn rounds(times: usize, calls: &[(&str, Value)]) -> Vec<Message> {
    (0..times).flat_map(|_| round(calls)).collect()
}

fn classify(run: &[Message]) -> Verdict {
    LoopDetectionMiddleware::default().classify(run)
}

#[test]
fn third_repeat_warns_once_and_fifth_ends_run() {
    let search = [("web_search", json!({"query": "rust"}))];
    assert_eq!(classify(&rounds(2, &search)), Verdict::Fine);
    assert!(
        matches!(classify(&rounds(3, &search)), Verdict::Warn(text) if text.contains("3 times"))
    );
    assert_eq!(classify(&rounds(4, &search)), Verdict::Fine);
    assert_eq!(classify(&rounds(5, &search)), Verdict::Stop);
    assert_eq!(classify(&[]), Verdict::Fine);
    assert_eq!(
        classify(&[rounds(5, &search), vec![Message::ai("done")]].concat()),
        Verdict::Fine
    );
}

#[test]
fn calls_are_compared_by_identifying_arguments() {
    let call = |name: &str, args: Value| answer(&[(name, args)]).tool_calls()[0].clone();
    for (name, left, right, same) in [
        (
            "bash",
            json!({"command": "ls", "description": "a"}),
            json!({"command": "ls", "description": "b"}),
            true,
        ),
        (
            "bash",
            json!({"command": "ls"}),
            json!({"command": "pwd"}),
            false,
        ),
        (
            "read_file",
            json!({"path": "/a", "start_line": 1}),
            json!({"path": "/a", "start_line": 150, "end_line": 9}),
            true,
        ),
        (
            "read_file",
            json!({"path": "/a"}),
            json!({"path": "/a", "start_line": 201}),
            false,
        ),
        (
            "write_file",
            json!({"path": "/a", "content": "1"}),
            json!({"path": "/a", "content": "2"}),
            false,
        ),
        (
            "own",
            json!({"x": 1, "y": 2}),
            json!({"y": 2, "x": 1}),
            true,
        ),
        ("own", json!({"x": 1}), json!({"x": 1, "path": "/a"}), false),
    ] {
        assert_eq!(
            are_equivalent(&call(name, left.clone()), &call(name, right.clone())),
            same,
            "{name} {left} {right}"
        );
    }
    let (a, b) = (
        ("bash", json!({"command": "a"})),
        ("bash", json!({"command": "b"})),
    );
    let set = |calls: &[(&str, Value)]| answer(calls).tool_calls().to_vec();
    assert!(same_calls(
        &set(&[a.clone(), b.clone()]),
        &set(&[b.clone(), a.clone()])
    ));
    assert!(!same_calls(
        &set(&[a.clone(), b.clone()]),
        &set(&[a.clone(), a.clone()])
    ));
    assert!(!same_calls(
        &set(std::slice::from_ref(&a)),
        &set(&[a.clone(), b])
    ));
}

#[test]
fn unparsable_calls_count_as_repeats() {
    let broken = |args: &str| {
        Message::ai("").with(|body| {
            let MessageKind::Ai {
                invalid_tool_calls, ..
            } = &mut body.kind
            else {
                return;
            };
            let call = json!({"id": "c", "name": "read_file", "args": args});
            invalid_tool_calls
                .push(serde_json::from_value(call).unwrap_or_else(|error| panic!("{error}")));
        })
    };
    assert!(matches!(classify(&vec![broken("{"); 3]), Verdict::Warn(_)));
    assert_eq!(classify(&vec![broken("{"); 5]), Verdict::Stop);
    assert_eq!(
        classify(
            &(0..5)
                .map(|at| broken(&format!("{{{at}")))
                .collect::<Vec<_>>()
        ),
        Verdict::Fine
    );
}

#[test]
fn repeats_count_within_window_only() {
    let same = [("bash", json!({"command": "ls"}))];
    let mut run = rounds(4, &same);
    for other in 0..20 {
        run.extend(round(&[("web_search", json!({ "query": other }))]));
    }
    run.extend(round(&same));
    assert_eq!(classify(&run), Verdict::Fine);
}

#[test]
fn frequent_tool_warns_once_then_stops_with_limits_per_tool() {
    let many = |count: usize| {
        (0..count)
            .flat_map(|at| round(&[("web_search", json!({ "query": at }))]))
            .collect::<Vec<_>>()
    };
    assert_eq!(classify(&many(29)), Verdict::Fine);
    assert!(matches!(classify(&many(30)), Verdict::Warn(text) if text.contains("web_search")));
    assert_eq!(classify(&many(31)), Verdict::Fine);
    assert_eq!(classify(&many(50)), Verdict::Stop);
    let limits = serde_json::from_value(
        json!({"tool_freq_overrides": {"web_search": {"warn": 2, "hard_limit": 4}}}),
    )
    .unwrap();
    let strict = LoopDetectionMiddleware::new(limits);
    assert!(matches!(strict.classify(&many(2)), Verdict::Warn(_)));
    assert_eq!(strict.classify(&many(4)), Verdict::Stop);
}

#[tokio::test]
async fn stopped_answer_keeps_text_and_loses_all_calls() {
    let mut run = rounds(4, &[("bash", json!({"command": "ls"}))]);
    run.push(answer(&[("bash", json!({"command": "ls"}))]).with(|body| {
        body.content = "let me see".into();
        body.additional_kwargs
            .insert("tool_calls".to_owned(), json!([{"id": "c0"}]));
    }));
    let state = state_of([vec![Message::human("go")], run].concat());
    let outcome = LoopDetectionMiddleware::default()
        .after_model(&state, &context(1).0)
        .await
        .unwrap();
    assert_eq!(outcome.stop_reason.as_deref(), Some("loop_capped"));
    let [answer] = &outcome.update.messages[..] else {
        panic!("one answer")
    };
    assert_eq!(answer.id, state.messages().last().unwrap().id);
    assert!(
        answer.tool_calls().is_empty()
            && answer
                .content
                .text()
                .starts_with("let me see\n\nI stopped here")
    );
    assert!(!answer.additional_kwargs.contains_key("tool_calls"));
    assert_eq!(answer.response_metadata["finish_reason"], "stop");
}

#[tokio::test]
async fn new_user_message_resets_detection_even_if_hidden() {
    let same = [("bash", json!({"command": "ls"}))];
    let hidden = |run: Option<&str>| {
        reminder("next", "again").with(|body| {
            body.additional_kwargs
                .extend(run.map(|run| (kwargs::RUN_ID.to_owned(), json!(run))));
        })
    };
    for (question, is_new) in [
        (Message::human("again"), true),
        (hidden(Some("r2")), true),
        (hidden(None), false),
    ] {
        let messages = [
            vec![Message::human("go")],
            rounds(4, &same),
            vec![question],
            round(&same),
        ]
        .concat();
        let outcome = LoopDetectionMiddleware::default()
            .after_model(&state_of(messages), &context(1).0)
            .await
            .unwrap();
        assert_eq!(outcome == HookOutcome::default(), is_new);
    }
}
