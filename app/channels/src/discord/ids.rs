//! Ids of Discord: decimal numbers that contain a time.

use chrono::{DateTime, Utc};
use serde_json::Value;

/// Maximum number of digits.
const MAX_DIGITS: usize = 20;
/// Discord's epoch in milliseconds.
const EPOCH_MS: i64 = 1_420_070_400_000;

/// Returns the id in a JSON text. Other texts are refused, because ids become parts of paths.
pub(super) fn id(value: &Value) -> Option<&str> {
    value.as_str().filter(|text| is_id(text))
}

/// `true` for a text that is an id.
pub(super) fn is_id(text: &str) -> bool {
    (1..=MAX_DIGITS).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// `true` if the first id was created after the second one.
pub(super) fn is_newer(first: &str, second: &str) -> bool {
    number(first) > number(second)
}

fn number(id: &str) -> u128 {
    id.parse().unwrap_or_default()
}

/// Returns the time that an id contains.
pub(super) fn time_of(id: &str) -> DateTime<Utc> {
    let ms = i64::try_from(number(id) >> 22).unwrap_or_default();
    DateTime::from_timestamp_millis(ms.saturating_add(EPOCH_MS)).unwrap_or_default()
}
