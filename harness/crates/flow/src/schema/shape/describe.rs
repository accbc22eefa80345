//! Words for shapes and values in messages.

use serde_json::Value;

use super::types::{MAX_NAME, Shape};

/// Maximum characters of a value that a message quotes.
const MAX_QUOTED: usize = 40;

/// Describes what a shape accepts.
pub(super) fn expectation(shape: &Shape) -> String {
    match shape {
        Shape::Any => "any value".to_owned(),
        Shape::Text => "text".to_owned(),
        Shape::Name => format!("text of 1 to {MAX_NAME} characters"),
        Shape::NodeId => "an id of 1 to 128 characters without control characters, `|` and `:`, \
                          and not `__start__`, `__end__` or `*`"
            .to_owned(),
        Shape::Version => "a version such as \"2.0\"".to_owned(),
        Shape::Bool => "true or false".to_owned(),
        Shape::Integer(min, u64::MAX) => format!("an integer of at least {min}"),
        Shape::Integer(min, max) => format!("an integer from {min} to {max}"),
        Shape::Number(f64::MIN, f64::MAX) => "a number".to_owned(),
        Shape::Number(min, max) => format!("a number from {min} to {max}"),
        Shape::Positive => "a number above 0".to_owned(),
        Shape::OneOf(names) => format!("one of {}", names.join(", ")),
        Shape::List(_, 0, usize::MAX) => "a list".to_owned(),
        Shape::List(_, 0, max) => format!("a list of at most {max} items"),
        Shape::List(_, min, usize::MAX) => format!("a list of at least {min} items"),
        Shape::List(_, min, max) => format!("a list of {min} to {max} items"),
        Shape::Map(_) | Shape::Record(_) => "an object".to_owned(),
    }
}

/// Describes a value that does not fit. Quotes texts only where names are expected, because any
/// other text may be a secret.
pub(super) fn found(shape: &Shape, value: &Value) -> String {
    match value {
        Value::Null => "nothing".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Number(number) => number.to_string(),
        Value::String(text) if text.is_empty() => "an empty text".to_owned(),
        Value::String(text) if matches!(shape, Shape::OneOf(_) | Shape::NodeId) => quoted(text),
        Value::String(text) => format!("text of {} characters", text.chars().count()),
        Value::Array(items) => format!("a list of {} items", items.len()),
        Value::Object(_) => "an object".to_owned(),
    }
}

fn quoted(text: &str) -> String {
    let start: String = text.chars().take(MAX_QUOTED).collect();
    let more = if start.len() < text.len() { "…" } else { "" };
    format!("{start:?}{more}")
}
