//! Tests of the limits of fields.

use serde_json::json;

use super::*;

/// Returns the answer to a body under small limits.
fn answer(body: Value) -> Result<(), String> {
    let mut limits = LimitsConfig::default();
    limits.max_metadata_bytes = 20;
    limits.max_config_bytes = 60;
    limits.max_message_bytes = 40;
    limits.max_item_bytes = 30;
    let fields = body.as_object().cloned().expect("an object");
    check_fields(&fields, &limits).map_err(|error| match error {
        ApiError::FieldTooLarge(refused) => refused.to_string(),
        ApiError::Invalid(issues) => issues[0].msg.clone(),
        other => panic!("{other:?}"),
    })
}

/// Builds the body that contains a value in one field.
type BodyOf = fn(Value) -> Value;

/// Returns a value with `size` bytes of JSON.
fn sized(size: usize) -> Value {
    json!({ "a": "x".repeat(size - 8) })
}

#[test]
fn each_field_is_accepted_up_to_its_limit() {
    let cases: &[(&str, usize, BodyOf)] = &[
        ("metadata", 20, |value| json!({ "metadata": value })),
        ("config", 60, |value| json!({ "config": value })),
        (
            "config.metadata",
            20,
            |value| json!({ "config": { "metadata": value } }),
        ),
        ("context", 60, |value| json!({ "context": value })),
        ("value", 30, |value| json!({ "value": value })),
        (
            "input.messages[1]",
            40,
            |value| json!({ "input": { "messages": [{}, value] } }),
        ),
        (
            "input.messages",
            40,
            |value| json!({ "input": { "messages": value } }),
        ),
        (
            "input.title",
            40,
            |value| json!({ "input": { "title": value } }),
        ),
        (
            "values.messages[0]",
            40,
            |value| json!({ "values": { "messages": [value, {}] } }),
        ),
        (
            "values.todos",
            40,
            |value| json!({ "values": { "todos": value } }),
        ),
        ("input", 40, |value| json!({ "input": [value] })),
        (
            "command.update.messages[0]",
            40,
            |value| json!({ "command": { "update": { "messages": [value] } } }),
        ),
        (
            "command.update.messages[0]",
            40,
            |value| json!({ "command": { "update": [["messages", [value]]] } }),
        ),
        (
            "command.resume",
            40,
            |value| json!({ "command": { "resume": value } }),
        ),
        (
            "command.goto.input.messages[0]",
            40,
            |value| json!({ "command": { "goto": [{ "node": "n", "input": { "messages": [value] } }] } }),
        ),
        (
            "supersteps[1].values.messages[0]",
            40,
            |value| json!({ "supersteps": [{}, { "updates": [{}, { "values": { "messages": [value] } }] }] }),
        ),
        (
            "supersteps[0].command.update.title",
            40,
            |value| json!({ "supersteps": [{ "updates": [{ "command": { "update": { "title": value } } }] }] }),
        ),
    ];
    for (field, limit, body) in cases {
        // The third case of `input` adds the brackets of the list.
        let extra = if *field == "input" { 2 } else { 0 };
        assert_eq!(answer(body(sized(limit - extra))), Ok(()), "{field}");
        let size = limit + 1;
        let expected = format!("{field} is limited to {limit} bytes as JSON, this one has {size}");
        assert_eq!(answer(body(sized(size - extra))), Err(expected), "{field}");
    }
}

#[test]
fn long_text_is_refused_with_its_name() {
    for (field, limit) in TEXTS {
        let body = |length| json!({ *field: "x".repeat(length) });
        assert_eq!(answer(body(*limit)), Ok(()), "{field}");
        let size = limit + 1;
        let expected = format!("{field} is limited to {limit} bytes, this one has {size}");
        assert_eq!(answer(body(size)), Err(expected));
    }
}

#[test]
fn long_list_of_nodes_is_refused() {
    for field in LISTS {
        let refused = answer(json!({ *field: ["x".repeat(MAX_LIST_BYTES)] })).expect_err(field);
        assert!(refused.starts_with(field), "{refused}");
    }
}

#[test]
fn many_small_messages_are_accepted() {
    let messages = vec![sized(40); 1_000];
    assert_eq!(answer(json!({ "input": { "messages": messages } })), Ok(()));
}

#[test]
fn values_of_other_types_are_left_to_their_rules() {
    for body in [
        json!({ "metadata": null, "config": 5, "context": "x", "input": null }),
        json!({ "command": [], "supersteps": {}, "values": 7 }),
        json!({ "supersteps": [5, { "updates": 5 }, { "updates": [5] }], "name": 5 }),
        json!({ "command": { "update": [5], "goto": 5, "resume": null } }),
        json!({ "unknown": "x".repeat(1_000) }),
    ] {
        assert_eq!(answer(body.clone()), Ok(()), "{body}");
    }
}
