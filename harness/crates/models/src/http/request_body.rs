//! JSON body of a request to a provider, which contains parts that earlier requests have serialized.

use std::sync::Arc;

use bytes::Bytes;
use indexmap::IndexMap;
use parking_lot::Mutex;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};

use crate::ToolSchema;
use deerflow_core::json_size::json_bytes;

/// JSON object with its keys in order.
#[derive(Debug, Clone, Default)]
pub(crate) struct RequestBody(IndexMap<String, JsonPart>);

/// Value in a [`RequestBody`].
#[derive(Debug, Clone)]
pub(crate) enum JsonPart {
    /// Value that is serialized with the request.
    Tree(Value),
    /// JSON text that other requests contain as well.
    Text(Arc<RawValue>),
    /// Array.
    List(Vec<JsonPart>),
    /// JSON texts of one or more items of an array, separated by commas.
    Joined(Bytes),
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

    /// Serializes the body as consecutive chunks. A long text that other requests contain as well is
    /// a chunk of its own, which shares the memory of the text.
    pub(crate) fn into_chunks(self) -> serde_json::Result<Vec<Bytes>> {
        let copied: usize = self.0.values().map(JsonPart::copied_bytes).sum();
        let mut chunks = Chunks {
            ended: Vec::new(),
            text: Vec::with_capacity(copied + KEY_BYTES * (self.0.len() + 1)),
        };
        let mut separator = b'{';
        for (key, part) in self.0 {
            chunks.text.push(separator);
            serde_json::to_writer(&mut chunks.text, &key)?;
            chunks.text.push(b':');
            chunks.push(part)?;
            separator = b',';
        }
        if separator == b'{' {
            chunks.text.push(separator);
        }
        chunks.text.push(b'}');
        chunks.end_text();
        Ok(chunks.ended)
    }

    /// Returns the body as a tree.
    #[cfg(any(test, feature = "testkit"))]
    pub(crate) fn to_value(&self) -> Value {
        let chunks = self.clone().into_chunks().unwrap_or_default();
        serde_json::from_slice(&chunks.concat()).unwrap_or_default()
    }
}

/// Minimum length of a shared text that is not copied into a request, in bytes.
const LONG_TEXT: usize = 4 << 10;

/// Estimated length of a key and a value without texts, in bytes.
const KEY_BYTES: usize = 64;

impl JsonPart {
    /// Returns the number of bytes of shared texts that are copied into a request.
    fn copied_bytes(&self) -> usize {
        let copied = |length: usize| if length < LONG_TEXT { length + 1 } else { 0 };
        match self {
            Self::Tree(_) => 0,
            Self::Text(text) => copied(text.get().len()),
            Self::Joined(texts) => copied(texts.len()),
            Self::List(parts) => parts.iter().map(Self::copied_bytes).sum(),
        }
    }
}

/// JSON text in chunks.
#[derive(Debug)]
struct Chunks {
    ended: Vec<Bytes>,
    /// Text of the chunk that is being written.
    text: Vec<u8>,
}

impl Chunks {
    fn push(&mut self, part: JsonPart) -> serde_json::Result<()> {
        match part {
            JsonPart::Tree(value) => serde_json::to_writer(&mut self.text, &value)?,
            JsonPart::Text(text) if text.get().len() >= LONG_TEXT => {
                self.end_text();
                self.ended.push(json_bytes(text));
            }
            JsonPart::Text(text) => self.text.extend_from_slice(text.get().as_bytes()),
            JsonPart::Joined(texts) if texts.len() >= LONG_TEXT => {
                self.end_text();
                self.ended.push(texts);
            }
            JsonPart::Joined(texts) => self.text.extend_from_slice(&texts),
            JsonPart::List(parts) => {
                self.text.push(b'[');
                for (index, part) in parts.into_iter().enumerate() {
                    if index > 0 {
                        self.text.push(b',');
                    }
                    self.push(part)?;
                }
                self.text.push(b']');
            }
        }
        Ok(())
    }

    fn end_text(&mut self) {
        if !self.text.is_empty() {
            self.ended.push(std::mem::take(&mut self.text).into());
        }
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
#[path = "request_body_tests.rs"]
mod tests;
