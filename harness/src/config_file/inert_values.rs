//! Values of settings without effect that need no warning.

use serde_json::{Value, json};

/// Values that need no warning.
pub(super) enum InertValues {
    /// All values except true.
    Off,
    /// An empty list, map or text.
    Empty,
    /// DeerFlow's default, as JSON.
    Default(&'static str),
    /// Values that satisfy the predicate.
    Matching(fn(&Value) -> bool),
}

/// `true` for the class that stores skills in folders.
pub(super) fn is_local_storage(class: &Value) -> bool {
    class
        .as_str()
        .is_none_or(|class| class.rsplit([':', '.']).next() == Some("LocalSkillStorage"))
}

/// `true` for every value but true.
pub(super) fn is_off(value: &Value) -> bool {
    *value != json!(true)
}

impl InertValues {
    /// `true` if the value requests an effect.
    pub(super) fn is_requested(&self, value: &Value) -> bool {
        let is_inert = match self {
            Self::Off => is_off(value),
            Self::Empty => match value {
                Value::Array(items) => items.is_empty(),
                Value::Object(fields) => fields.is_empty(),
                Value::String(text) => text.is_empty(),
                _ => false,
            },
            Self::Default(default) => {
                serde_json::from_str(default).is_ok_and(|default: Value| is_same(&default, value))
            }
            Self::Matching(matches) => matches(value),
        };
        !is_inert && !value.is_null()
    }
}

/// `true` if both values are equal; a number or a boolean may be written as text.
fn is_same(default: &Value, value: &Value) -> bool {
    let number = |value: &Value| value.as_f64().or_else(|| value.as_str()?.parse().ok());
    let text = |value: &Value| {
        value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned)
    };
    match (number(default), number(value)) {
        (Some(default), Some(value)) => (default - value).abs() < f64::EPSILON,
        _ if default.is_array() => default == value,
        _ => text(default) == text(value),
    }
}
