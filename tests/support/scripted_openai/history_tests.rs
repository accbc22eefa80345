//! Histories that providers accept and histories that they reject.

use serde_json::json;

use super::*;

fn user() -> Value {
    json!({"role": "user", "content": "hi"})
}

fn calls(ids: &[&str]) -> Value {
    let calls: Vec<_> =
        ids.iter().map(|id| json!({"id": id, "type": "function", "function": {"name": "bash", "arguments": "{}"}})).collect();
    json!({"role": "assistant", "content": null, "tool_calls": calls})
}

fn result(id: &str) -> Value {
    json!({"role": "tool", "tool_call_id": id, "content": "ok"})
}

fn refusal(messages: &[Value]) -> String {
    check(messages).map_or_else(|error| error.to_string(), |()| "accepted".to_owned())
}

#[test]
fn paired_history_passes_in_any_order_of_parallel_results() {
    let text = json!({"role": "assistant", "content": "done"});
    let history = [
        user(),
        calls(&["a", "b"]),
        result("b"),
        result("a"),
        text,
        user(),
        calls(&["a"]),
        result("a"),
    ];
    assert_eq!(check(&history), Ok(()));
    assert_eq!(check(&[]), Ok(()));
}

#[test]
fn unanswered_call_is_rejected_at_the_next_message() {
    assert_eq!(
        refusal(&[user(), calls(&["a", "b"]), result("a"), user()]),
        r#"messages[3]: user before the results of ["b"]"#
    );
    assert_eq!(
        refusal(&[calls(&["a"]), calls(&["b"])]),
        r#"messages[1]: assistant before the results of ["a"]"#
    );
    assert_eq!(
        refusal(&[user(), calls(&["a"])]),
        r#"messages[2]: end of history before the results of ["a"]"#
    );
}

#[test]
fn stray_result_is_rejected_with_its_reason() {
    assert_eq!(
        refusal(&[user(), result("a")]),
        r#"messages[1]: tool result for "a", a call that was never made"#
    );
    assert_eq!(
        refusal(&[result("a"), calls(&["a"])]),
        r#"messages[0]: tool result for "a", before the call was made"#
    );
    assert_eq!(
        refusal(&[calls(&["a"]), result("a"), result("a")]),
        r#"messages[2]: tool result for "a", which was answered already"#
    );
}

#[test]
fn empty_ids_names_and_roles_are_rejected() {
    assert_eq!(
        refusal(&[calls(&[""])]),
        "messages[0]: tool call without an id"
    );
    assert_eq!(
        refusal(&[calls(&["a", "a"])]),
        r#"messages[0]: two tool calls with the id "a""#
    );
    assert_eq!(
        refusal(&[json!({"role": "tool", "content": "x"})]),
        "messages[0]: tool result with an empty tool_call_id"
    );
    assert_eq!(
        refusal(&[json!({"content": "x"})]),
        r#"messages[0]: unknown role """#
    );
    let nameless =
        json!({"role": "assistant", "tool_calls": [{"id": "a", "function": {"arguments": "{}"}}]});
    assert_eq!(
        refusal(&[nameless]),
        "messages[0]: tool call without a tool name"
    );
    let parsed = json!({"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": "x", "arguments": {}}}]});
    assert_eq!(
        refusal(&[parsed]),
        "messages[0]: tool call without an argument text"
    );
}
