//! Messages and channel values as clients send them.

use harness::messages::{InvalidMessage, Message, MessageKind, kwargs};
use harness::state::reducer_of;
use indexmap::IndexMap;
use serde_json::{Map, Value};

use crate::dialect::Dialect;
use crate::error::{ApiError, Issue};

/// Keys of `additional_kwargs` by which the server knows its own messages; from a client they would be forged.
const SERVER_KWARGS: &[&str] = &[
    kwargs::ORIGINAL_USER_CONTENT,
    "dynamic_context_reminder",
    "reminder_date",
    "view_image_context",
    kwargs::ERROR_FALLBACK,
    kwargs::INCOMPLETE,
    // What a model's provider gave and takes back as its own.
    "provider_parts",
    "reasoning_details",
    "tool_call_extras",
];

/// Values for a state, checked: every channel is one that threads have.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StateValues {
    /// The messages, if `messages` was among the values.
    pub messages: Option<Vec<Message>>,
    /// The other channels.
    pub channels: IndexMap<String, Value>,
}

/// Reads channel values. `place` names them in errors, such as `input`.
pub fn read_values(
    values: Map<String, Value>,
    place: &'static str,
    dialect: Dialect,
) -> Result<StateValues, ApiError> {
    let unknown: Vec<&str> = values
        .keys()
        .map(String::as_str)
        .filter(|key| *key != "messages" && reducer_of(key).is_none())
        .collect();
    if !unknown.is_empty() {
        let text = format!(
            "Unknown thread-state field(s): {}",
            unknown.join(", ").chars().take(200).collect::<String>()
        );
        return Err(ApiError::Unprocessable(text));
    }
    let mut read = StateValues::default();
    for (key, value) in values {
        if key != "messages" {
            read.channels.insert(key, value);
        } else if !value.is_null() {
            read.messages = Some(coerce_messages(value, place, dialect)?);
        }
    }
    Ok(read)
}

/// Reads a list of messages, or one. An error names the message's place.
pub fn coerce_messages(
    value: Value,
    place: &'static str,
    dialect: Dialect,
) -> Result<Vec<Message>, ApiError> {
    let items = match value {
        Value::Array(items) => items,
        one @ (Value::Object(_) | Value::String(_)) => vec![one],
        other => {
            let loc = vec!["body".into(), place.into(), "messages".into()];
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
        .map(|(index, item)| coerce(item, index, place, dialect))
        .collect()
}

fn coerce(
    item: Value,
    index: usize,
    place: &'static str,
    dialect: Dialect,
) -> Result<Message, ApiError> {
    let message = Message::coerce(item).map_err(|error| {
        let InvalidMessage {
            place: inner,
            reason,
        } = error;
        let inner: String = inner.iter().map(|part| format!(".{part}")).collect();
        if dialect.is_platform() {
            ApiError::Unprocessable(format!("{place}.messages.{index}{inner}: {reason}"))
        } else {
            ApiError::BadRequest(format!(
                "Invalid message at {place}.messages[{index}]{inner}: {reason}"
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
    fn what_providers_keep_in_messages_is_not_taken_from_clients() {
        let kept = json!({"provider_parts": {}, "reasoning_details": [], "tool_call_extras": {}, "reasoning_content": "hm"});
        let sent = json!({"type": "ai", "content": "so", "additional_kwargs": kept});
        let messages = coerce_messages(sent, "input", Dialect::DeerFlow).expect("a message");
        assert_eq!(
            messages[0].additional_kwargs.keys().collect::<Vec<_>>(),
            ["reasoning_content"]
        );
    }
}
