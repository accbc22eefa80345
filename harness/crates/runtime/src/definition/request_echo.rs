//! Request of a run as clients see it.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use deerflow_core::json_size::{json_bytes, raw_value};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

/// Request of a run as clients see it, as JSON text: the `kwargs` of the run. Clones share the text,
/// because it contains the input, which may be large. The default is JSON null.
#[derive(Debug, Clone, Default)]
pub struct RequestEcho(Option<Arc<Box<RawValue>>>);

impl RequestEcho {
    /// Serializes a request.
    ///
    /// # Errors
    /// The request cannot be serialized as JSON.
    pub fn new<T: Serialize + ?Sized>(request: &T) -> serde_json::Result<Self> {
        Ok(Self(Some(Arc::new(raw_value(request)?))))
    }

    /// Creates an echo from its stored text.
    ///
    /// # Errors
    /// The text is not JSON.
    pub fn from_text(text: String) -> serde_json::Result<Self> {
        Ok(Self(Some(Arc::new(RawValue::from_string(text)?))))
    }

    /// Returns the text.
    pub fn text(&self) -> &str {
        self.raw().get()
    }

    /// Returns the text as bytes that share its memory.
    pub fn to_bytes(&self) -> Bytes {
        match &self.0 {
            Some(text) => json_bytes(Arc::clone(text)),
            None => Bytes::from_static(RawValue::NULL.get().as_bytes()),
        }
    }

    /// Parses the text.
    pub fn to_value(&self) -> Value {
        serde_json::from_str(self.text()).unwrap_or_default()
    }

    /// Returns one field; `None` if the request is not an object with it.
    pub fn field(&self, name: &str) -> Option<&RawValue> {
        let mut fields: BTreeMap<String, &RawValue> = serde_json::from_str(self.text()).ok()?;
        fields.remove(name)
    }

    fn raw(&self) -> &RawValue {
        self.0.as_ref().map_or(RawValue::NULL, |text| text)
    }
}

impl From<Value> for RequestEcho {
    fn from(request: Value) -> Self {
        // The serialization of a tree cannot fail.
        Self::new(&request).unwrap_or_default()
    }
}

impl PartialEq for RequestEcho {
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text()
    }
}

impl Eq for RequestEcho {}

impl Serialize for RequestEcho {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.raw().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for RequestEcho {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Value::deserialize(deserializer).map(Self::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn echo_reads_and_serializes_as_its_json() {
        let request = json!({ "input": { "a": [1, "\u{0}\""] }, "resumable": true });
        let echo = RequestEcho::from(request.clone());
        assert_eq!(echo.text(), request.to_string());
        assert_eq!(echo.to_value(), request);
        assert_eq!(json!(echo), request);
        assert_eq!(RequestEcho::from_text(request.to_string()).unwrap(), echo);
        assert_eq!(
            serde_json::from_value::<RequestEcho>(request).unwrap(),
            echo
        );
        assert_eq!(echo.field("resumable").map(RawValue::get), Some("true"));
        assert!(echo.field("config").is_none());
    }

    #[test]
    fn default_is_null_and_damaged_text_is_an_error() {
        assert_eq!(RequestEcho::default(), RequestEcho::from(Value::Null));
        assert_eq!(RequestEcho::default().text(), "null");
        assert!(RequestEcho::default().field("input").is_none());
        assert!(RequestEcho::from_text("{".to_owned()).is_err());
    }
}
