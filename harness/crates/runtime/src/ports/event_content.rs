//! Content of a journal event.

use std::borrow::Cow;
use std::ops::Deref;
use std::sync::OnceLock;

use deerflow_core::messages::Message;
use serde::{Serialize, Serializer};
use serde_json::Value;

/// Content of a journal event: any JSON. It reads like a [`Value`].
///
/// Content made of a message is stored with the JSON text that the message shares with its
/// checkpoint and its frames, without an intermediate tree.
#[derive(Debug, Clone)]
pub struct EventContent(Repr);

#[derive(Debug, Clone)]
enum Repr {
    Json(Value),
    /// A message, and its JSON once that was read.
    Message(Message, OnceLock<Value>),
}

impl EventContent {
    /// Returns a copy of the content.
    pub fn to_value(&self) -> Value {
        Value::clone(self)
    }

    /// Returns the content as JSON text. That of a message is not copied.
    pub fn json(&self) -> Cow<'_, str> {
        match &self.0 {
            Repr::Json(value) => Cow::Owned(value.to_string()),
            Repr::Message(message, _) => Cow::Borrowed(message.json().get()),
        }
    }

    /// Returns the content.
    pub fn into_value(self) -> Value {
        match self.0 {
            Repr::Json(value) => value,
            Repr::Message(message, value) => {
                value.into_inner().unwrap_or_else(|| value_of(&message))
            }
        }
    }
}

impl Deref for EventContent {
    type Target = Value;

    fn deref(&self) -> &Value {
        match &self.0 {
            Repr::Json(value) => value,
            Repr::Message(message, value) => value.get_or_init(|| value_of(message)),
        }
    }
}

impl From<Value> for EventContent {
    fn from(value: Value) -> Self {
        Self(Repr::Json(value))
    }
}

impl From<Message> for EventContent {
    fn from(message: Message) -> Self {
        Self(Repr::Message(message, OnceLock::new()))
    }
}

impl PartialEq for EventContent {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl PartialEq<Value> for EventContent {
    fn eq(&self, other: &Value) -> bool {
        **self == *other
    }
}

impl Serialize for EventContent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            Repr::Json(value) => value.serialize(serializer),
            Repr::Message(message, _) => message.json().serialize(serializer),
        }
    }
}

fn value_of(message: &Message) -> Value {
    serde_json::to_value(message).unwrap_or(Value::Null)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn message_reads_and_serializes_as_its_json() {
        let message = Message::human("a\"b\u{0}").with(|body| body.id = Some("m1".to_owned()));
        let content = EventContent::from(message.clone());
        assert_eq!(
            serde_json::to_string(&content).unwrap(),
            message.json().get()
        );
        assert_eq!(content["id"], "m1");
        assert_eq!(content, EventContent::from(json!(message)));
        assert_eq!(content.into_value(), json!(message));
    }
}
