//! Comparison of results with cases: `null` expects absence, numbers are equal by value.

use serde_json::Value;

/// Appends the differences between an expected part and a value. `null` expects absence.
pub(crate) fn compare(place: &str, expected: &Value, found: Option<&Value>, out: &mut Vec<String>) {
    match (expected, found) {
        (Value::Null, None | Some(Value::Null)) => {}
        (Value::Object(expected), Some(Value::Object(found))) => {
            for (key, value) in expected {
                compare(&format!("{place}.{key}"), value, found.get(key), out);
            }
        }
        (Value::Array(expected), Some(Value::Array(found))) if expected.len() == found.len() => {
            for (at, value) in expected.iter().enumerate() {
                compare(&format!("{place}[{at}]"), value, found.get(at), out);
            }
        }
        (Value::Number(a), Some(Value::Number(b))) if a.as_f64() == b.as_f64() => {}
        (expected, Some(found)) if expected == found => {}
        (expected, found) => out.push(format!("{place}: expected {expected}, found {found:?}")),
    }
}
