//! Comparison of expected and actual values.

use serde_json::Value;

/// Returns `true` if `actual` has everything of `expected`; objects may have more fields.
pub(crate) fn includes(actual: &Value, expected: &Value) -> bool {
    match (actual, expected) {
        (Value::Object(actual), Value::Object(expected)) => expected.iter().all(|(key, value)| {
            actual
                .get(key)
                .is_some_and(|actual| includes(actual, value))
        }),
        (Value::Array(actual), Value::Array(expected)) => {
            actual.len() == expected.len()
                && actual
                    .iter()
                    .zip(expected)
                    .all(|(actual, expected)| includes(actual, expected))
        }
        (Value::Number(actual), Value::Number(expected)) => actual.as_f64() == expected.as_f64(),
        _ => actual == expected,
    }
}

/// Adds a difference unless the values match.
pub(crate) fn compare(differences: &mut Vec<String>, what: &str, actual: &Value, expected: &Value) {
    if !includes(actual, expected) {
        differences.push(format!("{what}: expected {expected}, got {actual}"));
    }
}

/// Adds a difference for each text that is missing, forbidden, or out of order.
pub(crate) fn compare_text(
    differences: &mut Vec<String>,
    what: &str,
    text: &str,
    present: &Value,
    in_order: &Value,
) {
    let texts = |value: &Value| -> Vec<String> {
        let items = value.as_array().cloned().unwrap_or_default();
        items
            .iter()
            .filter_map(|item| item.as_str().map(str::to_owned))
            .collect()
    };
    for expected in texts(present) {
        if !text.contains(&expected) {
            differences.push(format!("{what}: {expected:?} is missing in {text:?}"));
        }
    }
    let mut rest = text;
    for expected in texts(in_order) {
        match rest.find(&expected) {
            Some(at) => rest = &rest[at + expected.len()..],
            None => differences.push(format!("{what}: {expected:?} is out of order in {text:?}")),
        }
    }
}
