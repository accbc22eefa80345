//! Payloads of journal rows within a maximum size. They stay objects, unlike a text that is cut.

use serde_json::{Map, Value};

use super::payload_limits::{
    Limits, MAX_BYTES, MAX_DEPTH, MAX_NAME, OPEN_DEPTH, SCALAR_BYTES, is_within,
};
use crate::definition::EventContent;

/// Limits, from wide to narrow: the first that keeps a payload within its size applies. Ids and
/// codes are shorter than each of them.
const LIMITS: [Limits; 4] = [
    Limits::new(4_000, 200),
    Limits::new(500, 100),
    Limits::new(200, 20),
    Limits::new(200, 4),
];
/// Mark at the end of a text that was cut.
const MARK: &str = "…";

/// Returns a payload in which texts have at most `max_chars` characters, and fewer if all of them
/// together are too large. Text within the limits is returned as it is, without a copy.
pub(super) fn bounded(payload: &EventContent, max_chars: usize) -> EventContent {
    match payload.text() {
        Some(json) if is_within(json, LIMITS[0].with(max_chars)) => payload.clone(),
        _ => bounded_copy(payload, max_chars).into(),
    }
}

fn bounded_copy(payload: &Value, max_chars: usize) -> Value {
    let mut value = Value::Null;
    for limits in LIMITS {
        let mut copy = Copy {
            limits: limits.with(max_chars),
            bytes: 0,
        };
        value = copy.of(payload, 0);
        if copy.bytes <= MAX_BYTES {
            break;
        }
    }
    value
}

struct Copy {
    limits: Limits,
    /// Size of the copied values, estimated.
    bytes: usize,
}

impl Copy {
    fn of(&mut self, value: &Value, depth: usize) -> Value {
        let entries = if depth < OPEN_DEPTH {
            usize::MAX
        } else {
            self.limits.entries
        };
        match value {
            Value::String(text) => self.text(text, self.limits.text).into(),
            Value::Array(_) | Value::Object(_) if depth == MAX_DEPTH => MARK.into(),
            Value::Array(items) => {
                let items = items.iter().take(entries);
                items.map(|item| self.of(item, depth + 1)).collect()
            }
            Value::Object(fields) => {
                let fields = fields.iter().take(entries);
                let copied = fields
                    .map(|(key, value)| (self.text(key, MAX_NAME), self.of(value, depth + 1)));
                Value::Object(copied.collect::<Map<_, _>>())
            }
            other => {
                self.bytes += SCALAR_BYTES;
                other.clone()
            }
        }
    }

    fn text(&mut self, text: &str, max: usize) -> String {
        let cut = match text.char_indices().nth(max) {
            Some((end, _)) => format!("{}{MARK}", &text[..end]),
            None => text.to_owned(),
        };
        self.bytes += cut.len();
        cut
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            (0_usize..450).prop_map(|length| "é\"".repeat(length / 2).into()),
        ];
        leaf.prop_recursive(14, 300, 210, |inner| {
            let name = (0_usize..205).prop_map(|length| "n".repeat(length));
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..210).prop_map(Value::from),
                prop::collection::vec((name, inner), 0..4)
                    .prop_map(|fields| fields.into_iter().collect::<Map<_, _>>().into()),
            ]
        })
    }

    proptest! {
        #[test]
        fn text_within_the_limits_is_what_a_copy_would_be(payload in value(), max in 0_usize..500) {
            let text = serde_json::value::to_raw_value(&payload).unwrap();
            let of_text = bounded(&EventContent::from(text), max);
            prop_assert_eq!(of_text, bounded(&EventContent::from(payload), max));
        }
    }

    #[test]
    fn long_text_is_cut_and_the_payload_stays_an_object() {
        let payload = json!({"nodeId": "a", "inputs": {"data": "é".repeat(9_000)}, "visit": 3});
        let cut = bounded_copy(&payload, 10_000);
        assert_eq!((&cut["nodeId"], &cut["visit"]), (&json!("a"), &json!(3)));
        let length = |cut: &Value| {
            cut["inputs"]["data"]
                .as_str()
                .map(|text| text.chars().count())
        };
        assert_eq!(length(&cut), Some(4_001));
        assert_eq!(length(&bounded_copy(&payload, 300)), Some(301));
    }

    #[test]
    fn large_payload_stays_within_the_maximum_with_its_fields() {
        let texts = json!(vec!["x".repeat(10_000); 500]);
        let payload = json!({"payload": {"inputs": {"a": texts, "b": texts}, "visit": 3}});
        let cut = bounded_copy(&payload, 10_000);
        assert!(cut.to_string().len() < 2 * MAX_BYTES);
        assert_eq!(cut["payload"]["visit"], 3);
        let numbers = json!({"payload": {"inputs": vec![vec![1; 10_000]; 500]}});
        assert!(bounded_copy(&numbers, 10_000).to_string().len() < MAX_BYTES);
    }

    #[test]
    fn deep_payload_is_cut_at_the_maximum_depth() {
        let deep = (0..100).fold(json!("end"), |inner, _| json!([inner]));
        assert!(!bounded_copy(&deep, 100).to_string().contains("end"));
    }
}
