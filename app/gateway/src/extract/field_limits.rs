//! Limits of the fields of bodies. A field has the same limit in every body, so one table lists them.

use harness::config::LimitsConfig;
use harness::json_size::{TooLarge, check_size, size_beyond};
use serde_json::{Map, Value};

use crate::error::{ApiError, Issue, truncated};

/// Maximum lengths of texts in bytes, except of those that the function using them limits.
const TEXTS: &[(&str, usize)] = &[
    ("as_node", 256),
    ("checkpoint_id", 256),
    ("comment", 16 << 10),
    ("description", 16 << 10),
    ("human_message_id", 256),
    ("message_id", 256),
    ("name", 1 << 10),
    ("webhook", 64 << 10),
];

/// Lists of short texts that are stored with a run.
const LISTS: &[&str] = &[
    "feedback_keys",
    "interrupt_after",
    "interrupt_before",
    "stream_mode",
];

/// Maximum size of such a list, in bytes of JSON.
const MAX_LIST_BYTES: usize = 16 << 10;

/// Checks the sizes of the fields of a body, without a copy of them.
///
/// # Errors
/// [`ApiError::FieldTooLarge`] with the name of the field, or [`ApiError::Invalid`] for a long text.
pub(crate) fn check_fields(
    body: &Map<String, Value>,
    limits: &LimitsConfig,
) -> Result<(), ApiError> {
    let message = limits.max_message_bytes;
    for (name, value) in body {
        match name.as_str() {
            "metadata" => check_size(name, value, limits.max_metadata_bytes)?,
            "config" => {
                check_size(name, value, limits.max_config_bytes)?;
                if let Some(metadata) = value.get("metadata") {
                    check_size("config.metadata", metadata, limits.max_metadata_bytes)?;
                }
            }
            "context" => check_size(name, value, limits.max_config_bytes)?,
            "input" | "values" => check_values(name, value, message)?,
            "command" => check_command(name, value, message)?,
            "supersteps" => check_steps(name, value, message)?,
            "value" => check_size(name, value, limits.max_item_bytes)?,
            name if LISTS.contains(&name) => check_size(name, value, MAX_LIST_BYTES)?,
            _ => check_text(name, value)?,
        }
    }
    Ok(())
}

/// Checks a text of [`TEXTS`].
fn check_text(name: &str, value: &Value) -> Result<(), ApiError> {
    let length = value.as_str().map_or(0, str::len);
    let limit = TEXTS.iter().find(|(known, _)| *known == name);
    match limit {
        Some((_, limit)) if length > *limit => {
            let text = format!("{name} is limited to {limit} bytes, this one has {length}");
            let loc = vec!["body".into(), name.into()];
            // The text itself is omitted from the response.
            let issue = Issue::new("string_too_long", loc, text, &Value::Null);
            Err(ApiError::issue(issue))
        }
        _ => Ok(()),
    }
}

/// Checks each message and each other channel of values.
fn check_values(place: &str, values: &Value, limit: usize) -> Result<(), TooLarge> {
    let Value::Object(channels) = values else {
        return check_size(place, values, limit);
    };
    channels
        .iter()
        .try_for_each(|(name, value)| check_channel(place, name, value, limit))
}

/// Checks the value of one channel, or each of its messages.
fn check_channel(place: &str, name: &str, value: &Value, limit: usize) -> Result<(), TooLarge> {
    let beyond = |value: &Value, part: &dyn Fn() -> String| match size_beyond(value, limit) {
        None => Ok(()),
        Some(size) => Err(TooLarge {
            field: format!("{place}.{}{}", truncated(name), part()),
            limit,
            size,
        }),
    };
    match value {
        Value::Array(messages) if name == "messages" => messages
            .iter()
            .enumerate()
            .try_for_each(|(index, message)| beyond(message, &|| format!("[{index}]"))),
        _ => beyond(value, &String::new),
    }
}

/// Checks the update of a command, its resume value, and the inputs of its nodes.
fn check_command(place: &str, command: &Value, limit: usize) -> Result<(), TooLarge> {
    let Value::Object(fields) = command else {
        return Ok(());
    };
    let inner = |name: &str| format!("{place}.{name}");
    for (name, value) in fields {
        match (name.as_str(), value) {
            ("update", Value::Array(pairs)) => {
                for pair in pairs {
                    check_pair(&inner("update"), pair, limit)?;
                }
            }
            ("update", values) => check_values(&inner("update"), values, limit)?,
            ("goto", Value::Array(nodes)) => {
                for node in nodes {
                    check_node(&inner("goto"), node, limit)?;
                }
            }
            ("goto", node) => check_node(&inner("goto"), node, limit)?,
            ("resume", answer) => check_size(&inner("resume"), answer, limit)?,
            _ => {}
        }
    }
    Ok(())
}

/// Checks a pair of channel and value.
fn check_pair(place: &str, pair: &Value, limit: usize) -> Result<(), TooLarge> {
    match pair.as_array().map(Vec::as_slice) {
        Some([Value::String(name), value]) => check_channel(place, name, value, limit),
        _ => check_size(place, pair, limit),
    }
}

/// Checks the input of a node.
fn check_node(place: &str, node: &Value, limit: usize) -> Result<(), TooLarge> {
    match node.get("input") {
        Some(input) => check_values(&format!("{place}.input"), input, limit),
        None => check_size(place, node, limit),
    }
}

/// Checks the updates of steps.
fn check_steps(place: &str, steps: &Value, limit: usize) -> Result<(), ApiError> {
    let steps = steps.as_array().map(Vec::as_slice).unwrap_or_default();
    for (index, step) in steps.iter().enumerate() {
        let updates = step.get("updates").and_then(Value::as_array);
        for update in updates.into_iter().flatten() {
            let place = format!("{place}[{index}]");
            if let Some(values) = update.get("values") {
                check_values(&format!("{place}.values"), values, limit)?;
            }
            if let Some(command) = update.get("command") {
                check_command(&format!("{place}.command"), command, limit)?;
            }
            if let Some(node) = update.get("as_node") {
                check_text("as_node", node)?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
#[path = "field_limits_tests.rs"]
mod tests;
