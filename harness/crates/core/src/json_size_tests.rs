//! Tests of sizes and of limited merges.

use std::cell::Cell;

use serde::Serializer;
use serde_json::json;

use super::*;

#[test]
fn size_equals_the_length_of_the_compact_text() {
    for value in [
        json!(null),
        json!({}),
        json!({ "a": [1, -2.5, true, null], "b": { "c": "\u{1}\"\\\n" } }),
        json!("zażółć 🦌"),
        json!([[], [{}], ""]),
    ] {
        let length = value.to_string().len();
        assert_eq!(size_beyond(&value, length), None, "{value}");
        assert_eq!(size_beyond(&value, length - 1), Some(length), "{value}");
    }
}

#[test]
fn raw_value_is_the_compact_text() {
    for value in [json!({ "a": "\"\n" }), json!(["\n".repeat(LARGE_TEXT)])] {
        assert_eq!(raw_value(&value).expect("JSON").get(), value.to_string());
    }
}

#[test]
fn refusal_names_field_limit_and_size() {
    let value = json!({ "a": "x".repeat(20) });
    let refused = check_size("metadata", &value, 10).expect_err("too large");
    assert_eq!(
        refused.to_string(),
        "metadata is limited to 10 bytes as JSON, this one has 28"
    );
    assert_eq!(check_size("metadata", &value, 28), Ok(()));
}

/// Text that counts how often it is serialized.
struct Observed<'a>(&'a Cell<usize>);

impl Serialize for Observed<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.set(self.0.get() + 1);
        serializer.serialize_str("0123456789")
    }
}

#[test]
fn counting_stops_at_the_limit() {
    let visits = Cell::new(0);
    let items: Vec<_> = (0..1_000).map(|_| Observed(&visits)).collect();
    assert!(counted(&items, 100) > 100);
    assert!(visits.get() < 12, "{}", visits.get());
}

fn object(value: Value) -> Map<String, Value> {
    value.as_object().cloned().expect("an object")
}

#[test]
fn merge_is_limited_by_its_result() {
    let merge = |before, entries, limit| {
        merge_within("metadata", object(before), object(entries), limit)
            .map(Value::Object)
            .map_err(|refused| refused.size)
    };
    let (a, b) = (json!({ "a": "1234" }), json!({ "b": "5678" }));
    let both = json!({ "a": "1234", "b": "5678" });
    assert_eq!(merge(a.clone(), b.clone(), Some(23)), Ok(both.clone()));
    assert_eq!(merge(a.clone(), b.clone(), Some(22)), Err(23));
    assert_eq!(merge(a.clone(), b, None), Ok(both.clone()));
    // An object that is larger already can be made smaller, and is not checked without a change.
    let less = json!({ "b": null });
    assert_eq!(
        merge(both.clone(), less, Some(5)),
        Ok(json!({ "a": "1234", "b": null }))
    );
    assert_eq!(merge(both.clone(), json!({}), Some(5)), Ok(both.clone()));
    assert_eq!(merge(both, json!({ "c": 1 }), Some(5)), Err(29));
}

#[test]
fn limit_of_zero_accepts_no_value() {
    assert_eq!(size_beyond(&Value::Null, 0), Some(4));
}

#[test]
fn brackets_in_texts_do_not_nest() {
    assert_eq!(nesting(br#"{"a":"[[[[\"[[[","b":[1]}"#), 2);
    assert_eq!(nesting(br#"["\\",[["}"]]]"#), 3);
    assert_eq!(nesting(b"7"), 0);
    assert_eq!(nesting("[".repeat(1_000_000).as_bytes()), 1_000_000);
}
