//! Reads fields beside an answer's words leniently: a field that nobody can read is absent, and costs no answer.

use serde::de::{Deserialize, DeserializeOwned, Deserializer};
use serde_json::Value;

use crate::messages::UsageMetadata;

/// The field, or nothing where it is something else than it should be.
pub(in crate::models) fn lenient<'de, T: DeserializeOwned, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    Ok(serde_json::from_value(Value::deserialize(deserializer)?).ok())
}

/// A number of tokens, or nothing where it is none.
pub(in crate::models) fn count<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<u64>, D::Error> {
    Ok(count_of(&Value::deserialize(deserializer)?))
}

/// The number of tokens that a value means: a number or its text, whole or not, at most [`UsageMetadata::MOST`]. Nothing for a negative
/// number and for what is no number.
pub(in crate::models) fn count_of(value: &Value) -> Option<u64> {
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
    fn a_count_is_read_however_it_is_written() {
        for (value, wanted) in [
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
            assert_eq!(count_of(&value), wanted, "{value}");
        }
    }
}
