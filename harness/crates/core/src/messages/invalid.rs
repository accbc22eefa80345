//! Checks the types of a message's fields as a client sent them, and reports the path of the first
//! wrong one.

use serde_json::{Map, Value};

use super::content::json_type;

/// Reason why a JSON value is not a message, with the path inside the message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{reason}", prefix(place))]
pub struct InvalidMessage {
    /// Keys and indices that lead to the wrong value; empty for the message itself.
    pub place: Vec<String>,
    /// Expected and actual value.
    pub reason: String,
}

impl InvalidMessage {
    /// Creates a reason that concerns the whole message.
    pub(super) fn whole(reason: impl Into<String>) -> Self {
        Self {
            place: Vec::new(),
            reason: reason.into(),
        }
    }

    fn within(mut self, key: impl Into<String>) -> Self {
        self.place.insert(0, key.into());
        self
    }
}

fn prefix(place: &[String]) -> String {
    if place.is_empty() {
        String::new()
    } else {
        format!("{}: ", place.join("."))
    }
}

/// Names of the message types, for error texts.
pub(super) const TYPES: &str =
    "human, user, system, developer, ai, assistant, tool, function, remove";

/// Maximum length of a quoted value in an error text, in characters.
const MAX_ECHO_CHARS: usize = 80;

type Checked = Result<(), InvalidMessage>;
type Check = fn(&Value) -> Checked;
/// Name of a field, check of its value, and whether it is required.
type Field = (&'static str, Check, bool);

const MESSAGE: &[Field] = &[
    ("type", string, false),
    ("role", string, false),
    ("content", content, false),
    ("id", string, false),
    ("name", string, false),
    ("additional_kwargs", object, false),
    ("response_metadata", object, false),
    ("tool_calls", tool_calls, false),
    ("invalid_tool_calls", invalid_tool_calls, false),
    ("usage_metadata", usage, false),
    ("tool_call_id", string, false),
    ("status", status, false),
];
const BLOCK: &[Field] = &[("type", string, false), ("text", string, false)];
const TOOL_CALL: &[Field] = &[
    ("name", string, true),
    ("id", string, true),
    ("args", present_object, false),
    ("type", present_string, false),
];
const INVALID_TOOL_CALL: &[Field] = &[
    ("name", string, false),
    ("args", string, false),
    ("id", string, false),
    ("error", string, false),
    ("type", present_string, false),
];
const USAGE: &[Field] = &[
    ("input_tokens", count, false),
    ("output_tokens", count, false),
    ("total_tokens", count, false),
    ("input_token_details", present_object, false),
    ("output_token_details", present_object, false),
];

/// Checks the fields of a message. Does not check that the fields required by the message type are
/// present.
///
/// # Errors
/// The first field with a wrong type.
pub(super) fn check(message: &Map<String, Value>) -> Checked {
    if message.contains_key("type") && message.contains_key("role") {
        return Err(InvalidMessage::whole(
            "expected either \"type\" or \"role\", found both",
        ));
    }
    fields(message, MESSAGE)
}

fn fields(map: &Map<String, Value>, known: &[Field]) -> Checked {
    for (key, check, required) in known {
        match map.get(*key) {
            Some(value) => check(value).map_err(|error| error.within(*key))?,
            None if *required => {
                return Err(InvalidMessage::whole("a required field is missing").within(*key));
            }
            None => {}
        }
    }
    Ok(())
}

fn expected(what: &str, found: &Value) -> Checked {
    Err(InvalidMessage::whole(format!(
        "expected {what}, found {}",
        json_type(found)
    )))
}

fn string(value: &Value) -> Checked {
    if value.is_string() || value.is_null() {
        Ok(())
    } else {
        expected("a string", value)
    }
}

fn present_string(value: &Value) -> Checked {
    if value.is_string() {
        Ok(())
    } else {
        expected("a string", value)
    }
}

fn object(value: &Value) -> Checked {
    if value.is_object() || value.is_null() {
        Ok(())
    } else {
        expected("an object", value)
    }
}

fn present_object(value: &Value) -> Checked {
    if value.is_object() {
        Ok(())
    } else {
        expected("an object", value)
    }
}

fn count(value: &Value) -> Checked {
    if value.is_u64() {
        Ok(())
    } else {
        expected("a whole number from 0 to 2^64-1", value)
    }
}

fn content(value: &Value) -> Checked {
    match value {
        Value::Null | Value::String(_) => Ok(()),
        Value::Array(blocks) => each(blocks, block),
        other => expected("a string or a list of content blocks", other),
    }
}

fn block(value: &Value) -> Checked {
    match value {
        Value::String(_) => Ok(()),
        Value::Object(map) => fields(map, BLOCK),
        other => expected("a string or a content block", other),
    }
}

fn tool_calls(value: &Value) -> Checked {
    list(value, "a list of tool calls", |call| {
        of_object(call, TOOL_CALL)
    })
}

fn invalid_tool_calls(value: &Value) -> Checked {
    list(value, "a list of invalid tool calls", |call| {
        of_object(call, INVALID_TOOL_CALL)
    })
}

fn usage(value: &Value) -> Checked {
    if value.is_null() {
        Ok(())
    } else {
        of_object(value, USAGE)
    }
}

fn status(value: &Value) -> Checked {
    match value {
        Value::Null => Ok(()),
        Value::String(word) if word == "success" || word == "error" => Ok(()),
        Value::String(word) => Err(InvalidMessage::whole(format!(
            "expected \"success\" or \"error\", found {}",
            echo(word)
        ))),
        other => expected("\"success\" or \"error\"", other),
    }
}

fn of_object(value: &Value, known: &[Field]) -> Checked {
    match value {
        Value::Object(map) => fields(map, known),
        other => expected("an object", other),
    }
}

fn list(value: &Value, what: &str, check: impl Fn(&Value) -> Checked) -> Checked {
    match value {
        Value::Null => Ok(()),
        Value::Array(items) => each(items, check),
        other => expected(what, other),
    }
}

fn each(items: &[Value], check: impl Fn(&Value) -> Checked) -> Checked {
    items
        .iter()
        .enumerate()
        .try_for_each(|(index, item)| check(item).map_err(|error| error.within(index.to_string())))
}

/// Quotes a value for an error text, truncated to [`MAX_ECHO_CHARS`].
pub(super) fn echo(word: &str) -> String {
    format!(
        "{:?}",
        word.chars().take(MAX_ECHO_CHARS).collect::<String>()
    )
}

#[cfg(test)]
#[path = "invalid_tests.rs"]
mod tests;
