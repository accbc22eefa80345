//! Tests of pairing: single cases, and properties of arbitrary conversations.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn call(id: &str, name: &str) -> ToolCall {
    ToolCall::new(id, name, Map::new())
}

fn ai(calls: Vec<ToolCall>, invalid: Vec<InvalidToolCall>) -> Message {
    Message::ai("").with(|body| {
        body.kind = MessageKind::Ai {
            tool_calls: calls,
            invalid_tool_calls: invalid,
            usage_metadata: None,
        }
    })
}

fn invalid(id: &str, name: &str) -> InvalidToolCall {
    serde_json::from_value(json!({ "id": id, "name": name, "args": "{", "error": "cut off" }))
        .unwrap()
}

fn result(id: &str, name: &str, text: &str) -> Message {
    Message::tool(&call(id, name), text, ToolStatus::Success)
}

/// Renders answers as `calls of an answer` and results as `id:text`, in order.
fn shape(messages: &[Message]) -> Vec<String> {
    let one = |message: &Message| match message.tool_call_id() {
        Some(id) => format!("{id}:{}", message.content.text()),
        None => message
            .tool_calls()
            .iter()
            .map(|call| call.id.as_str())
            .collect::<Vec<_>>()
            .join("+"),
    };
    messages.iter().map(one).collect()
}

fn assert_paired(messages: &[Message]) {
    let mut at = 0;
    while at < messages.len() {
        assert!(
            messages[at].tool_call_id().is_none(),
            "a result without a call at {at}"
        );
        let ids: Vec<&str> = messages[at]
            .tool_calls()
            .iter()
            .map(|call| call.id.as_str())
            .collect();
        let unique: HashSet<&&str> = ids.iter().collect();
        assert_eq!(unique.len(), ids.len());
        for call in messages[at].tool_calls() {
            at += 1;
            assert!(!call.id.is_empty() && !call.name.trim().is_empty());
            assert_eq!(
                messages.get(at).and_then(Message::tool_call_id),
                Some(call.id.as_str())
            );
        }
        at += 1;
    }
}

#[test]
fn valid_conversation_is_unchanged() {
    let sound = vec![
        Message::human("q"),
        ai(vec![call("a", "ls"), call("b", "ls")], vec![]),
        result("a", "ls", "1"),
        result("b", "ls", "2"),
        Message::ai("done"),
    ];
    assert_eq!(repair(sound.clone()), sound);
}

#[test]
fn results_follow_calls_and_orphans_are_removed() {
    let messages = vec![
        result("x", "ls", "orphan"),
        ai(vec![call("a", "ls"), call("b", "ls")], vec![]),
        Message::human("meanwhile"),
        result("b", "ls", "2"),
        result("a", "ls", "1"),
        result("a", "ls", "again"),
    ];
    assert_eq!(shape(&repair(messages)), ["a+b", "a:1", "b:2", ""]);
}

#[test]
fn reused_id_pairs_within_turn_and_becomes_unique() {
    let messages = vec![
        ai(vec![call("c", "ls")], vec![]),
        result("c", "ls", "first"),
        ai(vec![call("c", "ls")], vec![]),
        result("c", "ls", "second"),
        ai(vec![call("d", "ls"), call("d", "ls")], vec![]),
        result("d", "ls", "third"),
        result("d", "ls", "fourth"),
    ];
    let repaired = repair(messages);
    assert_paired(&repaired);
    let renamed = "deerflow_synthetic_tool_call_2_tool_calls_0";
    assert_eq!(
        shape(&repaired)[..4],
        ["c", "c:first", renamed, &format!("{renamed}:second")]
    );
    assert_eq!(
        (repaired[5].content.text(), repaired[6].content.text()),
        ("third".to_owned(), "fourth".to_owned())
    );
}

#[test]
fn empty_ids_pair_by_position_or_unique_name() {
    let two = ai(vec![call("", "ls"), call("", "cat")], vec![]);
    let by_position = repair(vec![
        two.clone(),
        result("", "ls", "1"),
        result("", "cat", "2"),
    ]);
    assert_paired(&by_position);
    assert_eq!(
        (by_position[1].content.text(), by_position[2].content.text()),
        ("1".to_owned(), "2".to_owned())
    );
    assert_eq!(
        by_position[0].tool_calls()[1].id,
        "deerflow_synthetic_tool_call_0_tool_calls_1"
    );
    let by_name = repair(vec![two, result("", "cat", "2")]);
    assert!(by_name[1].content.text().contains("interrupted"));
    assert_eq!(by_name[2].content.text(), "2");
    let doubtful = repair(vec![
        ai(vec![call("", "ls"), call("", "ls")], vec![]),
        result("", "ls", "?"),
    ]);
    assert_paired(&doubtful);
    assert!(
        doubtful[1..]
            .iter()
            .all(|message| message.content.text().contains("interrupted"))
    );
}

#[test]
fn results_of_same_id_pair_with_nearest_call_first() {
    let nearest = ai(vec![call("a", "ls"), call("a", "ls")], vec![]);
    let repaired = repair(vec![
        ai(vec![call("a", "ls")], vec![]),
        nearest,
        result("a", "ls", "1"),
        result("a", "ls", "2"),
        result("a", "ls", "3"),
    ]);
    assert_paired(&repaired);
    let texts: Vec<String> = repaired
        .iter()
        .filter(|message| !message.is_ai())
        .map(|message| message.content.text())
        .collect();
    assert_eq!(texts, ["3", "1", "2"]);
}

#[test]
fn thousands_of_orphans_are_repaired_in_linear_time() {
    let calls = (0..10_000)
        .map(|nth| call(&format!("c{nth}"), "ls"))
        .chain((0..10_000).map(|_| call("", "ls")))
        .collect();
    let orphans =
        (0..20_000).map(|nth| result(if nth % 2 == 0 { "orphan" } else { "" }, "cat", "r"));
    let repaired = repair(
        std::iter::once(ai(calls, vec![]))
            .chain(orphans.clone())
            .collect(),
    );
    assert_eq!(repaired.len(), 1 + 20_000);
    assert!(repair(orphans.collect()).is_empty());
}

#[test]
fn call_without_result_gets_reason() {
    let messages = vec![ai(
        vec![call("a", "ls"), call("b", " ")],
        vec![
            invalid("c", "ls"),
            invalid("d", "write_file"),
            invalid("", ""),
        ],
    )];
    let repaired = repair(messages);
    assert_paired(&repaired);
    for (message, part) in repaired[1..].iter().zip([
        "was interrupted",
        "names no tool",
        "cut off",
        "in parts",
        "names no tool",
    ]) {
        assert!(
            message.content.text().contains(part),
            "{} / {part}",
            message.content.text()
        );
    }
    assert_eq!(repaired[2].name.as_deref(), Some("unknown_tool"));
}

#[test]
fn unparsed_calls_are_read_from_raw_form() {
    let raw = Message::ai("").with(|body| {
        body.additional_kwargs.insert(
            "tool_calls".to_owned(),
            json!([{"id": "r", "function": {"name": "ls", "arguments": "{\"path\": \"/\"}"}}, {"function": {"arguments": "[1]"}}]),
        );
    });
    let repaired = repair(vec![raw, result("r", "ls", "ok")]);
    assert_paired(&repaired);
    assert_eq!(repaired[0].tool_calls()[0].args["path"], "/");
    assert_eq!(shape(&repaired)[1], "r:ok");
    assert!(repaired[0].tool_calls()[1].args.is_empty());
}

fn any_message() -> impl Strategy<Value = Message> {
    let id = prop::sample::select(vec!["", "a", "b", "c"]);
    let name = prop::sample::select(vec!["", "ls", "cat", "write_file"]);
    let pair = (id, name);
    prop_oneof![
        Just(Message::human("h")),
        Just(Message::system("s")),
        pair.clone().prop_map(|(id, name)| result(id, name, "r")),
        (
            prop::collection::vec(pair.clone(), 0..4),
            prop::collection::vec(pair, 0..3)
        )
            .prop_map(|(calls, bad)| ai(
                calls.into_iter().map(|(id, name)| call(id, name)).collect(),
                bad.into_iter()
                    .map(|(id, name)| invalid(id, name))
                    .collect(),
            )),
    ]
}

proptest! {
    #[test]
    fn repair_pairs_any_conversation_and_is_idempotent(messages in prop::collection::vec(any_message(), 0..12)) {
        let others = |list: &[Message]| list.iter().filter(|message| message.tool_call_id().is_none()).count();
        let before = others(&messages);
        let repaired = repair(messages);
        assert_paired(&repaired);
        let ids: Vec<&str> = repaired.iter().flat_map(Message::tool_calls).map(|call| call.id.as_str()).collect();
        prop_assert_eq!(ids.iter().collect::<HashSet<_>>().len(), ids.len(), "ids are unique");
        prop_assert_eq!(others(&repaired), before);
        prop_assert_eq!(repair(repaired.clone()), repaired);
    }
}
