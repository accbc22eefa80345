//! Messages and channel values in requests.

use harness::messages::{InvalidMessage, Message, MessageKind, kwargs};
use harness::runtime::agent::known_channels;
use harness::state::Channels;
use indexmap::IndexMap;
use serde_json::{Map, Value};

use crate::dialect::Dialect;
use crate::error::{ApiError, Issue};

/// Keys of `additional_kwargs` by which the server recognises its own messages; clients could use
/// them to forge such messages.
const SERVER_KWARGS: &[&str] = &[
    kwargs::ORIGINAL_USER_CONTENT,
    "dynamic_context_reminder",
    "reminder_date",
    "view_image_context",
    kwargs::ERROR_FALLBACK,
    kwargs::INCOMPLETE,
    // Data of the model's provider that is sent back to it.
    "provider_parts",
    "reasoning_details",
    "tool_call_extras",
];

/// Validated values of a state: its agent has all channels.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StateValues {
    /// Messages, if `messages` was present.
    pub messages: Option<Vec<Message>>,
    /// Other channels.
    pub channels: IndexMap<String, Value>,
}

/// Reads values of `channels`. `location` is their location in errors, such as `input`.
pub fn read_values(
    values: Map<String, Value>,
    channels: &Channels,
    location: &'static str,
    dialect: Dialect,
) -> Result<StateValues, ApiError> {
    let values =
        known_channels(values, channels).map_err(|error| ApiError::of_input(error, location))?;
    let mut read = StateValues::default();
    for (key, value) in values {
        if key != "messages" {
            read.channels.insert(key, value);
        } else if !value.is_null() {
            read.messages = Some(coerce_messages(value, location, dialect)?);
        }
    }
    Ok(read)
}

/// Reads one message or a list. An error names the message's location.
pub fn coerce_messages(
    value: Value,
    location: &'static str,
    dialect: Dialect,
) -> Result<Vec<Message>, ApiError> {
    let items = match value {
        Value::Array(items) => items,
        one @ (Value::Object(_) | Value::String(_)) => vec![one],
        other => {
            let loc = vec!["body".into(), location.into(), "messages".into()];
            return Err(ApiError::issue(Issue::new(
                "list_type",
                loc,
                "Input should be a valid list",
                &other,
            )));
        }
    };
    items
        .into_iter()
        .enumerate()
        .map(|(index, item)| coerce(item, index, location, dialect))
        .collect()
}

fn coerce(
    item: Value,
    index: usize,
    location: &'static str,
    dialect: Dialect,
) -> Result<Message, ApiError> {
    let message = Message::coerce(item).map_err(|error| {
        let InvalidMessage {
            place: inner,
            reason,
        } = error;
        let inner: String = inner.iter().map(|part| format!(".{part}")).collect();
        if dialect.is_platform() {
            ApiError::Unprocessable(format!("{location}.messages.{index}{inner}: {reason}"))
        } else {
            ApiError::BadRequest(format!(
                "Invalid message at {location}.messages[{index}]{inner}: {reason}"
            ))
        }
    })?;
    let forged = !matches!(message.kind, MessageKind::Remove)
        && SERVER_KWARGS
            .iter()
            .any(|key| message.additional_kwargs.contains_key(*key));
    if !forged {
        return Ok(message);
    }
    Ok(message.with(|body| {
        body.additional_kwargs
            .retain(|key, _| !SERVER_KWARGS.contains(&key.as_str()))
    }))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn provider_data_of_clients_is_dropped() {
        let provider_data = json!({"provider_parts": {}, "reasoning_details": [], "tool_call_extras": {}, "reasoning_content": "hm"});
        let sent = json!({"type": "ai", "content": "so", "additional_kwargs": provider_data});
        let messages = coerce_messages(sent, "input", Dialect::DeerFlow).expect("a message");
        assert_eq!(
            messages[0].additional_kwargs.keys().collect::<Vec<_>>(),
            ["reasoning_content"]
        );
    }
}
