//! JSON body of a request to a provider, which contains parts that earlier requests have serialized.

use std::sync::Arc;

use indexmap::IndexMap;
use parking_lot::Mutex;
use serde::{Serialize, Serializer};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};

use crate::ToolSchema;

/// JSON object with its keys in order.
#[derive(Debug, Clone, Default)]
pub(crate) struct RequestBody(IndexMap<String, JsonPart>);

/// Value in a [`RequestBody`].
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub(crate) enum JsonPart {
    /// Value that is serialized with the request.
    Tree(Value),
    /// JSON text that other requests contain as well.
    Text(Arc<RawValue>),
    /// Array.
    List(Vec<JsonPart>),
}

impl From<Value> for JsonPart {
    fn from(value: Value) -> Self {
        Self::Tree(value)
    }
}

impl RequestBody {
    /// Sets a key. A key that is set already keeps its position.
    pub(crate) fn insert(&mut self, key: &str, part: impl Into<JsonPart>) {
        self.0.insert(key.to_owned(), part.into());
    }

    /// Returns the object of a key, to be changed.
    pub(crate) fn object_mut(&mut self, key: &str) -> Option<&mut Map<String, Value>> {
        match self.0.get_mut(key) {
            Some(JsonPart::Tree(Value::Object(object))) => Some(object),
            _ => None,
        }
    }

    /// Returns the body as a tree.
    #[cfg(any(test, feature = "testkit"))]
    pub(crate) fn to_value(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }
}

impl Extend<(String, Value)> for RequestBody {
    fn extend<T: IntoIterator<Item = (String, Value)>>(&mut self, entries: T) {
        let entries = entries.into_iter();
        self.0
            .extend(entries.map(|(key, value)| (key, JsonPart::Tree(value))));
    }
}

/// Takes the entries of an object. Another value becomes an empty body.
impl From<Value> for RequestBody {
    fn from(value: Value) -> Self {
        let mut body = Self::default();
        if let Value::Object(entries) = value {
            body.extend(entries);
        }
        body
    }
}

impl Serialize for RequestBody {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

/// Number of tool lists whose JSON a model retains: those of the agents that use it.
const MAX_TOOL_LISTS: usize = 16;

/// JSON of the tool lists that were sent last, the most recent one first. Lists are compared by
/// identity, because an agent shares its list with all of its requests.
#[derive(Debug, Default)]
pub(crate) struct ToolTexts(Mutex<Vec<ToolText>>);

/// A tool list with its JSON.
#[derive(Debug)]
struct ToolText {
    tools: Arc<[ToolSchema]>,
    json: Arc<RawValue>,
}

impl ToolTexts {
    /// Returns the JSON of a list, serialized by `build` at the first call.
    pub(crate) fn of(
        &self,
        tools: &Arc<[ToolSchema]>,
        build: impl FnOnce(&[ToolSchema]) -> Value,
    ) -> JsonPart {
        if let Some(text) = self.known(tools) {
            return JsonPart::Text(text);
        }
        let tree = build(tools);
        match to_raw_value(&tree) {
            Ok(text) => {
                let json: Arc<RawValue> = text.into();
                let tools = tools.clone();
                let mut known = self.0.lock();
                known.truncate(MAX_TOOL_LISTS - 1);
                known.insert(
                    0,
                    ToolText {
                        tools,
                        json: json.clone(),
                    },
                );
                JsonPart::Text(json)
            }
            Err(_) => JsonPart::Tree(tree),
        }
    }

    fn known(&self, tools: &Arc<[ToolSchema]>) -> Option<Arc<RawValue>> {
        let mut known = self.0.lock();
        let at = known
            .iter()
            .position(|text| Arc::ptr_eq(&text.tools, tools))?;
        known[..=at].rotate_right(1);
        Some(known[0].json.clone())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tools(name: &str) -> Arc<[ToolSchema]> {
        Arc::new([ToolSchema {
            name: name.to_owned(),
            description: String::new(),
            parameters: json!({}),
        }])
    }

    fn names(tools: &[ToolSchema]) -> Value {
        tools.iter().map(|tool| tool.name.as_str()).collect()
    }

    #[test]
    fn body_serializes_its_parts_in_order() {
        let text: Arc<RawValue> = to_raw_value(&json!({"b": 1})).unwrap().into();
        let mut body = RequestBody::default();
        body.insert("z", json!(1));
        let parts = vec![json!("a").into(), JsonPart::Text(text)];
        body.insert("list", JsonPart::List(parts));
        body.extend([("z".to_owned(), json!(2)), ("y".to_owned(), json!({}))]);
        body.object_mut("y")
            .unwrap()
            .insert("x".to_owned(), json!(3));
        assert!(body.object_mut("list").is_none());
        assert_eq!(
            serde_json::to_string(&body).unwrap(),
            r#"{"z":2,"list":["a",{"b":1}],"y":{"x":3}}"#
        );
        assert_eq!(body.to_value()["list"][1]["b"], 1);
    }

    #[test]
    fn tool_list_is_serialized_once_while_it_is_used() {
        let texts = ToolTexts::default();
        let (ls, cat) = (tools("ls"), tools("cat"));
        let sent = |tools: &Arc<[ToolSchema]>, is_new: bool| {
            let build = |list: &[ToolSchema]| {
                assert!(is_new);
                names(list)
            };
            serde_json::to_string(&texts.of(tools, build)).unwrap()
        };
        assert_eq!(sent(&ls, true), r#"["ls"]"#);
        assert_eq!(sent(&cat, true), r#"["cat"]"#);
        assert_eq!(sent(&ls, false), r#"["ls"]"#);
        for n in 0..MAX_TOOL_LISTS - 1 {
            sent(&tools(&n.to_string()), true);
        }
        assert_eq!(sent(&ls, false), r#"["ls"]"#);
        assert_eq!(sent(&cat, true), r#"["cat"]"#);
        assert_eq!(texts.0.lock().len(), MAX_TOOL_LISTS);
    }
}
