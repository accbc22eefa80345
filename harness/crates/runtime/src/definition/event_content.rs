//! Content of a journal event.

use std::borrow::Cow;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use deerflow_core::messages::Message;
use serde::{Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

/// Content of a journal event: any JSON. It reads like a [`Value`]. Clones share it.
///
/// Content made of JSON text or of a message is stored as text, and parsed only if it is read. A
/// message shares its text with its checkpoint and its frames. Text that cannot be parsed, because
/// it is nested more than 127 levels deep, reads as `null`.
#[derive(Debug, Clone)]
pub struct EventContent(Repr);

#[derive(Debug, Clone)]
enum Repr {
    Json(Arc<Value>),
    Text(Arc<Text>),
    /// A message, and its JSON once that was read.
    Message(Message, OnceLock<Value>),
}

/// JSON text, and its value once that was read.
#[derive(Debug)]
struct Text {
    json: Box<RawValue>,
    value: OnceLock<Value>,
}

impl EventContent {
    /// Returns a copy of the content.
    pub fn to_value(&self) -> Value {
        Value::clone(self)
    }

    /// Returns the JSON text that the content was made of.
    pub(crate) fn text(&self) -> Option<&str> {
        match &self.0 {
            Repr::Text(text) => Some(text.json.get()),
            Repr::Json(_) | Repr::Message(..) => None,
        }
    }

    /// Returns the content as JSON text. Text and the JSON of a message are not copied.
    pub fn json(&self) -> Cow<'_, str> {
        match &self.0 {
            Repr::Json(value) => Cow::Owned(value.to_string()),
            Repr::Text(text) => Cow::Borrowed(text.json.get()),
            Repr::Message(message, _) => Cow::Borrowed(message.json().get()),
        }
    }

    /// Returns the content.
    pub fn into_value(self) -> Value {
        match self.0 {
            Repr::Json(value) => Arc::unwrap_or_clone(value),
            Repr::Text(text) => match Arc::try_unwrap(text) {
                Ok(Text { json, value }) => value.into_inner().unwrap_or_else(|| parsed(&json)),
                Err(shared) => shared.value().clone(),
            },
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
            Repr::Text(text) => text.value(),
            Repr::Message(message, value) => value.get_or_init(|| value_of(message)),
        }
    }
}

impl From<Value> for EventContent {
    fn from(value: Value) -> Self {
        Self(Repr::Json(Arc::new(value)))
    }
}

impl From<Box<RawValue>> for EventContent {
    fn from(json: Box<RawValue>) -> Self {
        let value = OnceLock::new();
        Self(Repr::Text(Arc::new(Text { json, value })))
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
            Repr::Text(text) => text.json.serialize(serializer),
            Repr::Message(message, _) => message.json().serialize(serializer),
        }
    }
}

impl Text {
    fn value(&self) -> &Value {
        self.value.get_or_init(|| parsed(&self.json))
    }
}

/// Parses JSON text. Returns `null` if it is nested too deeply.
fn parsed(json: &RawValue) -> Value {
    serde_json::from_str(json.get()).unwrap_or_else(|error| {
        tracing::error!(%error, "cannot read the content of a journal event");
        Value::Null
    })
}

fn value_of(message: &Message) -> Value {
    serde_json::to_value(message).unwrap_or(Value::Null)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn text_reads_and_serializes_as_it_is() {
        let json = r#"{"b": 1.50, "a": ["x"]}"#;
        let content = EventContent::from(RawValue::from_string(json.to_owned()).unwrap());
        let shared = content.clone();
        assert_eq!(content.json(), json);
        assert_eq!(serde_json::to_string(&content).unwrap(), json);
        assert_eq!(content, json!({"b": 1.5, "a": ["x"]}));
        assert_eq!(content.into_value(), shared.to_value());
        assert_eq!(shared.into_value()["a"][0], "x");
    }

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
