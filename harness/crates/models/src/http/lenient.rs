//! Reads optional fields of an answer leniently: a malformed field is treated as absent and does
//! not fail the answer.

use serde::de::{Deserialize, DeserializeOwned, Deserializer};
use serde_json::Value;

use deerflow_core::messages::UsageMetadata;

/// Reads a field. Returns `None` if it has an unexpected type.
pub(crate) fn lenient<'de, T: DeserializeOwned, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    Ok(serde_json::from_value(Value::deserialize(deserializer)?).ok())
}

/// Reads a token count. Returns `None` if it is invalid.
pub(crate) fn count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    Ok(count_of(&Value::deserialize(deserializer)?))
}

/// Returns the token count of a value: a number or its text, rounded, at most
/// [`UsageMetadata::MOST`]. Returns `None` for a negative number and for any other value.
pub(crate) fn count_of(value: &Value) -> Option<u64> {
    if let Some(count) = value.as_u64() {
        return Some(count.min(UsageMetadata::MOST));
    }
    let number = match value {
        Value::Number(number) => number.as_f64()?,
        Value::String(text) => text.trim().parse().ok()?,
        _ => return None,
    };
    // A float beyond the largest integer becomes the largest one.
    (number >= 0.0).then_some((number.round() as u64).min(UsageMetadata::MOST))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn count_accepts_numbers_and_numeric_texts() {
        for (value, expected) in [
            (json!(7), Some(7)),
            (json!(7.6), Some(8)),
            (json!("7"), Some(7)),
            (json!(" 7.0 "), Some(7)),
            (json!(0), Some(0)),
            (json!(1e300), Some(UsageMetadata::MOST)),
            (json!(u64::MAX), Some(UsageMetadata::MOST)),
            (json!("1e999"), Some(UsageMetadata::MOST)),
            (json!(-5), None),
            (json!(-0.1), None),
            (json!("-5"), None),
            (json!("many"), None),
            (json!("NaN"), None),
            (json!(null), None),
            (json!(true), None),
            (json!([7]), None),
            (json!({"tokens": 7}), None),
        ] {
            assert_eq!(count_of(&value), expected, "{value}");
        }
    }
}
