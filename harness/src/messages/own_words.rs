//! The user's own text in a message.

use serde_json::Value;

use super::{Message, kwargs};

/// What the user wrote, before the framework put anything in front of it.
pub fn own_words(message: &Message) -> String {
    match message
        .additional_kwargs
        .get(kwargs::ORIGINAL_USER_CONTENT)
        .and_then(Value::as_str)
    {
        Some(original) => original.to_owned(),
        None => message.content.text(),
    }
}
