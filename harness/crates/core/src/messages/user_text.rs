//! Extracts the text that the user wrote from a message.

use std::borrow::Cow;

use serde_json::Value;

use super::{Message, kwargs};

/// Returns the text that the user wrote, without the additions of the framework.
pub fn user_text(message: &Message) -> Cow<'_, str> {
    match message
        .additional_kwargs
        .get(kwargs::ORIGINAL_USER_CONTENT)
        .and_then(Value::as_str)
    {
        Some(original) => Cow::Borrowed(original),
        None => message.content.text_cow(),
    }
}
