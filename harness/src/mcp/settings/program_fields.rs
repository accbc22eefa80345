//! Fields of a server entry that determine which program runs.

use serde_json::Value;

/// Fields that determine the program of a server, in addition to its variables.
pub(super) const PROGRAM: [&str; 4] = ["command", "args", "cwd", "starts_in_workspace"];

/// Returns the value of a field; `None` for null, `false` and empty values.
pub(super) fn non_blank<'a>(entry: &'a Value, field: &str) -> Option<&'a Value> {
    let is_blank = |value: &Value| match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    };
    entry.get(field).filter(|value| !is_blank(value))
}
