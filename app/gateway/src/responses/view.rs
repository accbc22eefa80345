//! JSON with values of the store that are passed on unparsed.

use deerflow_domain::threads::StoredState;
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// Channel values with unparsed messages.
#[derive(Debug, Clone)]
pub struct RawValues {
    messages: Box<RawValue>,
    channels: Map<String, Value>,
}

impl RawValues {
    /// Parses the values.
    pub fn read(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }
}

impl From<StoredState> for RawValues {
    fn from(state: StoredState) -> Self {
        Self {
            messages: state.messages,
            channels: state.channels,
        }
    }
}

impl Serialize for RawValues {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.channels.len() + 1))?;
        map.serialize_entry("messages", &self.messages)?;
        for (name, value) in &self.channels {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

/// An object whose `values` may be unparsed.
#[derive(Debug, Clone)]
pub struct RawView {
    object: Map<String, Value>,
    values: Option<RawValues>,
}

impl RawView {
    /// Replaces the `values` of `object`, if it has any, by `values`.
    pub fn new(object: Value, values: Option<RawValues>) -> Self {
        match object {
            Value::Object(object) => Self { object, values },
            _ => Self {
                object: Map::new(),
                values,
            },
        }
    }
}

impl Serialize for RawView {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.object.len()))?;
        for (key, value) in &self.object {
            match &self.values {
                Some(values) if key == "values" => map.serialize_entry(key, values)?,
                _ => map.serialize_entry(key, value)?,
            }
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn raw_values_are_embedded_unchanged() {
        let messages = RawValue::from_string(r#"[{"b":1,  "a":2}]"#.to_owned()).unwrap();
        let values = RawValues {
            messages,
            channels: Map::from_iter([("title".to_owned(), json!("T"))]),
        };
        let view = RawView::new(
            json!({ "id": 1, "values": null, "end": 2 }),
            Some(values.clone()),
        );
        assert_eq!(
            serde_json::to_string(&view).unwrap(),
            r#"{"id":1,"values":{"messages":[{"b":1,  "a":2}],"title":"T"},"end":2}"#
        );
        let without = RawView::new(json!({ "id": 1 }), Some(values));
        assert_eq!(serde_json::to_string(&without).unwrap(), r#"{"id":1}"#);
    }
}
