//! The estimate counts what the parser makes, and rejects only texts with extremely many values.

use proptest::prelude::*;
use serde_json::{Map, json};

use super::*;

fn size(text: impl AsRef<[u8]>) -> ParsedSize {
    parsed_size(text.as_ref(), usize::MAX)
}

fn values(value: &Value) -> usize {
    1 + match value {
        Value::Array(list) => list.iter().map(values).sum(),
        Value::Object(map) => map.values().map(values).sum(),
        _ => 0,
    }
}

/// Memory of a value that is exactly as large as its content.
fn min_bytes(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(list) => list.iter().map(|each| ELEMENT + min_bytes(each)).sum(),
        Value::Object(map) => map
            .iter()
            .map(|(key, each)| MEMBER + key.len() + min_bytes(each))
            .sum(),
        _ => 0,
    }
}

fn any_json() -> impl Strategy<Value = Value> {
    let text = || prop_oneof![r#"[a"\\{}\[\],:é\n ]{0,8}"#, "[a-z\"]{40,80}"];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-1e9..1e9).prop_map(|number: f64| number.into()),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 200, 20, move |inner| {
        let map = prop::collection::vec((text(), inner.clone()), 0..20);
        prop_oneof![
            prop::collection::vec(inner, 0..20).prop_map(Value::from),
            map.prop_map(|members| Value::Object(members.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

proptest! {
    #[test]
    fn count_equals_the_values_of_the_parsed_text(value in any_json(), pretty: bool) {
        let text = match pretty {
            true => serde_json::to_string_pretty(&value).unwrap(),
            false => value.to_string(),
        };
        let size = size(text);
        prop_assert_eq!(size.values, values(&value));
        prop_assert!(size.bytes >= min_bytes(&value));
    }

    #[test]
    fn any_bytes_are_scanned_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        prop_assert!(size(&bytes).values <= bytes.len());
    }

    #[test]
    fn broken_json_is_scanned_without_a_panic(text in r#"[\[\]{}:,"\\0a ]{0,300}"#) {
        prop_assert!(size(&text).values <= text.len());
    }
}

#[test]
fn structure_within_strings_is_not_counted() {
    for (text, expected) in [
        (r#"{"a\"],[{":"\\","b":"[1,2,\"3\",{}]"}"#, 3),
        (r#" [ 1 , -2.5e+3,true,null , "x" ] "#, 6),
        (r#"[[],{},[{"a":[]}]]"#, 6),
        (r#""\\\"""#, 1),
        ("", 0),
    ] {
        assert_eq!(size(text).values, expected, "{text}");
    }
    let long = format!("[\"{}\\\"],[\", 1]", "x".repeat(100));
    assert_eq!(size(long).values, 3);
}

#[test]
fn memory_follows_the_capacities_of_the_parser() {
    let list = |capacity: usize| ELEMENT + ALLOCATION + capacity * ELEMENT;
    assert_eq!(size("[]").bytes, ELEMENT);
    assert_eq!(size("[0]").bytes, list(4));
    assert_eq!(size("[0,0,0,0,0]").bytes, list(8));
    let object = |capacity: usize, keys: usize| {
        ELEMENT + ALLOCATION + capacity * MEMBER + keys * (ALLOCATION + 1)
    };
    assert_eq!(size(r#"{"a":0}"#).bytes, object(3, 1));
    assert_eq!(size(r#"{"a":0,"b":0,"c":0,"d":0}"#).bytes, object(7, 4));
    // Growth copies a large list.
    let large = format!("[0{}]", ",0".repeat(1_024));
    assert_eq!(size(large).bytes, list(2_048) + 1_024 * ELEMENT);
}

#[test]
fn nesting_beyond_the_parser_is_not_scanned() {
    let text = "[".repeat(1_000);
    assert_eq!(size(text).values, MAX_DEPTH + 1);
}

#[test]
fn body_of_short_values_is_rejected_with_its_field() {
    let text = format!(r#"{{"a":[1],"metadata":[0{}]}}"#, ",0".repeat(9_500_000));
    let error = check_parsed_size(text.as_bytes()).expect_err("too many values");
    assert_eq!(
        error.to_string(),
        "the request body has too many JSON values: the first 262149 in metadata need more than 54 MiB of memory, the limit for a body \
         of this size. Send fewer values, or several requests"
    );
    let lists = format!("[[[]]{}]", ",[[]]".repeat(1_000_000));
    let objects = format!(r#"[{{"":0}}{}]"#, r#",{"":0}"#.repeat(1_000_000));
    let members: String = (0..500_000).map(|key| format!(r#""k{key}":0,"#)).collect();
    for text in [lists, objects, format!("{{{members}\"\":0}}")] {
        let error = check_parsed_size(text.as_bytes()).expect_err("too many values");
        assert!(matches!(error, ApiError::TooManyValues(_)), "{error}");
    }
}

/// Messages of agents: every message calls a tool, and has 23 values.
fn update(messages: usize) -> String {
    let message = json!({
        "type": "ai", "content": "", "id": "run-0b7f3a52-9a1e-4c1e-9d55-1234567890ab", "name": null, "invalid_tool_calls": [],
        "tool_calls": [{
            "name": "read_file", "id": "call_abcdefghijklmnopqrst", "type": "tool_call",
            "args": { "path": "/mnt/user-data/workspace/a.md", "description": "read it" },
        }],
        "usage_metadata": { "input_tokens": 1200, "output_tokens": 30, "total_tokens": 1230 },
        "response_metadata": { "finish_reason": "tool_calls", "model_name": "gpt" },
        "additional_kwargs": {}, "example": false,
    });
    json!({ "values": { "messages": vec![message; messages] } }).to_string()
}

#[test]
fn update_with_thousands_of_messages_is_accepted() {
    let text = update(5_000);
    assert_eq!(size(&text).values, 115_003);
    check_parsed_size(text.as_bytes()).expect("accepted");
}

#[test]
fn body_of_long_texts_is_accepted() {
    let text = json!({ "input": vec!["x".repeat(1_000); 20_000] }).to_string();
    assert!(size(&text).bytes < text.len() * 5 / 4);
    check_parsed_size(text.as_bytes()).expect("accepted");
}
