//! Messages with fields of wrong types, as clients send them.

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::messages::Message;

fn refusal(message: Value) -> String {
    Message::coerce(message).expect_err("a refusal").to_string()
}

#[test]
fn wrong_field_type_is_reported_with_its_path() {
    for (field, value, wanted) in [
        (
            "content",
            json!(5),
            "content: expected a string or a list of content blocks, found a number",
        ),
        (
            "content",
            json!({ "text": "x" }),
            "content: expected a string or a list of content blocks, found an object",
        ),
        (
            "content",
            json!(["x", 5]),
            "content.1: expected a string or a content block, found a number",
        ),
        (
            "content",
            json!([{ "type": "text", "text": 5 }]),
            "content.0.text: expected a string, found a number",
        ),
        (
            "content",
            json!([{ "type": ["text"] }]),
            "content.0.type: expected a string, found a list",
        ),
        ("id", json!(7), "id: expected a string, found a number"),
        (
            "name",
            json!(true),
            "name: expected a string, found a boolean",
        ),
        (
            "additional_kwargs",
            json!([]),
            "additional_kwargs: expected an object, found a list",
        ),
        (
            "response_metadata",
            json!("x"),
            "response_metadata: expected an object, found a string",
        ),
        (
            "tool_calls",
            json!({}),
            "tool_calls: expected a list of tool calls, found an object",
        ),
        (
            "tool_calls",
            json!([1]),
            "tool_calls.0: expected an object, found a number",
        ),
        (
            "tool_calls",
            json!([{ "id": "c" }]),
            "tool_calls.0.name: a required field is missing",
        ),
        (
            "tool_calls",
            json!([{ "id": "c", "name": "n", "args": "{}" }]),
            "tool_calls.0.args: expected an object, found a string",
        ),
        (
            "invalid_tool_calls",
            json!([{ "args": {} }]),
            "invalid_tool_calls.0.args: expected a string, found an object",
        ),
        (
            "usage_metadata",
            json!({ "input_tokens": -1 }),
            "usage_metadata.input_tokens: expected a whole number from 0 to 2^64-1, found a number",
        ),
        (
            "tool_call_id",
            json!(1),
            "tool_call_id: expected a string, found a number",
        ),
        (
            "status",
            json!("fine"),
            "status: expected \"success\" or \"error\", found \"fine\"",
        ),
    ] {
        let mut message = json!({ "type": "ai", "content": "hi" });
        message[field] = value;
        assert_eq!(refusal(message), wanted);
    }
}

#[test]
fn non_object_and_unknown_type_are_reported() {
    assert_eq!(
        refusal(json!(5)),
        "a message must be an object, not a number"
    );
    assert_eq!(
        refusal(json!(["user", 5])),
        "content: expected a string or a list of content blocks, found a number"
    );
    assert_eq!(
        refusal(json!({ "type": 5 })),
        "type: expected a string, found a number"
    );
    assert!(
        refusal(json!({ "role": "robot" }))
            .starts_with("unknown message type \"robot\", expected one of human, user")
    );
    assert_eq!(
        refusal(json!({ "type": "human", "role": "user" })),
        "expected either \"type\" or \"role\", found both"
    );
    assert!(refusal(json!({ "type": "x".repeat(100_000) })).len() < 300);
}

#[test]
fn null_equals_absent_field() {
    for field in [
        "content",
        "id",
        "name",
        "additional_kwargs",
        "tool_calls",
        "usage_metadata",
        "status",
        "tool_call_id",
    ] {
        let mut message = json!({ "role": "user" });
        message[field] = Value::Null;
        assert!(Message::coerce(message).is_ok(), "{field}");
    }
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        prop::sample::select(vec!["", "human", "ai", "tool", "success", "text", "x"])
            .prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        let key = prop::sample::select(vec![
            "type",
            "text",
            "name",
            "args",
            "id",
            "error",
            "input_tokens",
            "input_token_details",
            "total_tokens",
            "other",
        ]);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::hash_map(key, inner, 0..4).prop_map(|map| Value::Object(
                map.into_iter()
                    .map(|(key, value)| (key.to_owned(), value))
                    .collect()
            )),
        ]
    })
}

proptest! {
    #[test]
    fn errors_do_not_contain_decoder_text(
        kind in prop::sample::select(vec!["type", "role"]),
        field in prop::sample::select(vec![
            "type", "role", "content", "id", "name", "additional_kwargs", "response_metadata", "tool_calls", "invalid_tool_calls",
            "usage_metadata", "tool_call_id", "artifact", "status",
        ]),
        value in json_value(),
    ) {
        let mut message = json!({});
        message[kind] = "ai".into();
        message[field] = value;
        if let Err(error) = Message::coerce(message) {
            let text = error.to_string();
            prop_assert!(!["variant", "untagged", "invalid type", "missing field", "duplicate field"].iter().any(|word| text.contains(word)), "{}", text);
        }
    }
}
