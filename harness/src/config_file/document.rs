//! YAML document as a tree with the line of every key and value.

use std::collections::HashMap;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use serde_saphyr::{DuplicateKeyPolicy, Spanned};

use super::error::SyntaxError;
use super::file_location::FileLocation;

/// Maximum nesting depth of a document. Real ones stay below ten; each level takes tens of KiB of
/// stack while parsing.
const MAX_DEPTH: usize = 24;
/// Maximum number of keys, values and brackets of a document; those that an alias repeats are
/// counted again.
const MAX_EVENTS: usize = 100_000;

/// Value with its location.
#[derive(Debug, Clone)]
pub struct Node {
    /// Location of the value.
    pub place: FileLocation,
    /// Content of the value.
    pub content: Content,
}

/// Content of a [`Node`].
#[derive(Debug, Clone)]
pub enum Content {
    /// Null.
    Null,
    /// Boolean.
    Bool(bool),
    /// Number.
    Number(Number),
    /// Text.
    Text {
        /// Value of the text.
        text: String,
        /// Environment variable that the text was read from.
        variable: Option<String>,
    },
    /// List.
    List(Vec<Node>),
    /// Map, in the order of the file.
    Map(Vec<Entry>),
}

/// Entry of a map.
#[derive(Debug, Clone)]
pub struct Entry {
    /// Key of the entry.
    pub key: String,
    /// Location of the key.
    pub place: FileLocation,
    /// Value of the entry.
    pub value: Node,
    /// Location of an earlier duplicate of the key; the last one applies.
    pub replaces: Option<FileLocation>,
}

impl Node {
    /// Parses one YAML document with a map at its root; an empty document is an empty map.
    ///
    /// # Errors
    /// The errors of [`read`](Self::read).
    pub fn parse(text: &str) -> Result<Self, SyntaxError> {
        let empty = || Self {
            place: FileLocation { line: 1, column: 1 },
            content: Content::Map(Vec::new()),
        };
        Ok(Self::read(text)?.unwrap_or_else(empty))
    }

    /// Parses one YAML document with a map at its root; `None` if the document is empty.
    ///
    /// # Errors
    /// An error with its location if the text is not valid YAML, exceeds limits, or has no map at
    /// its root.
    pub fn read(text: &str) -> Result<Option<Self>, SyntaxError> {
        let options = serde_saphyr::options! {
            with_snippet: false,
            duplicate_keys: DuplicateKeyPolicy::PassThrough,
            budget: serde_saphyr::budget! { max_depth: MAX_DEPTH, max_events: MAX_EVENTS },
            alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: MAX_EVENTS },
        };
        let root: Option<Node> =
            serde_saphyr::from_str_with_options(text, options).map_err(|error| {
                let location = error.location().map(FileLocation::from).unwrap_or_default();
                SyntaxError {
                    place: location,
                    message: plain_message(&error),
                }
            })?;
        match root {
            None
            | Some(Node {
                content: Content::Null,
                ..
            }) => Ok(None),
            Some(
                root @ Node {
                    content: Content::Map(_),
                    ..
                },
            ) => Ok(Some(root)),
            Some(Node { place, content }) => Err(SyntaxError {
                place,
                message: format!(
                    "the root of the file is {}, but must be a map of sections",
                    content.kind()
                ),
            }),
        }
    }

    /// Returns the entries of a map; empty for any other content.
    pub fn entries(&self) -> &[Entry] {
        match &self.content {
            Content::Map(entries) => entries,
            _ => &[],
        }
    }

    /// Returns the entry with this key.
    pub fn entry(&self, key: &str) -> Option<&Entry> {
        self.entries().iter().find(|entry| entry.key == key)
    }

    /// Follows `path` as far as it exists. Returns the last node, and `true` if it is the end of
    /// the path.
    pub fn follow<S: AsRef<str>>(&self, path: &[S]) -> (&Node, bool) {
        let mut node = self;
        for segment in path.iter().map(AsRef::as_ref) {
            let next = match &node.content {
                Content::Map(_) => node.entry(segment).map(|entry| &entry.value),
                Content::List(items) => segment
                    .parse()
                    .ok()
                    .and_then(|index: usize| items.get(index)),
                _ => None,
            };
            match next {
                Some(next) => node = next,
                None => return (node, false),
            }
        }
        (node, true)
    }

    /// Converts the value to JSON, without locations.
    pub fn to_json(&self) -> Value {
        match &self.content {
            Content::Null => Value::Null,
            Content::Bool(value) => Value::Bool(*value),
            Content::Number(number) => Value::Number(number.clone()),
            Content::Text { text, .. } => Value::String(text.clone()),
            Content::List(items) => Value::Array(items.iter().map(Node::to_json).collect()),
            Content::Map(entries) => Value::Object(
                entries
                    .iter()
                    .map(|entry| (entry.key.clone(), entry.value.to_json()))
                    .collect::<Map<_, _>>(),
            ),
        }
    }
}

impl Content {
    /// Creates a text that was written in the file.
    pub(super) fn text(text: impl Into<String>) -> Self {
        Self::Text {
            text: text.into(),
            variable: None,
        }
    }

    fn kind(&self) -> &'static str {
        match self {
            Self::Null => "nothing",
            Self::Bool(_) => "a boolean",
            Self::Number(_) => "a number",
            Self::Text { .. } => "text",
            Self::List(_) => "a list",
            Self::Map(_) => "a map",
        }
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<Content>::deserialize(deserializer)?;
        Ok(Self {
            place: spanned.referenced.into(),
            content: spanned.value,
        })
    }
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ContentVisitor)
    }
}

struct ContentVisitor;

impl<'de> Visitor<'de> for ContentVisitor {
    type Value = Content;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a YAML value")
    }

    fn visit_unit<E>(self) -> Result<Content, E> {
        Ok(Content::Null)
    }

    fn visit_none<E>(self) -> Result<Content, E> {
        Ok(Content::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Content, E> {
        Ok(Content::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Content, E> {
        Ok(Content::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Content, E> {
        Ok(Content::Number(value.into()))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Content, E> {
        Number::from_f64(value)
            .map(Content::Number)
            .ok_or_else(|| E::custom("a number must be finite"))
    }

    fn visit_str<E>(self, text: &str) -> Result<Content, E> {
        Ok(Content::text(text))
    }

    fn visit_string<E>(self, text: String) -> Result<Content, E> {
        Ok(Content::text(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Content, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            items.push(item);
        }
        Ok(Content::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Content, A::Error> {
        let mut entries: Vec<Entry> = Vec::new();
        let mut positions: HashMap<String, usize> = HashMap::new();
        while let Some((key, value)) = map.next_entry::<Spanned<String>, Node>()? {
            let location = FileLocation::from(key.referenced);
            match positions.get(&key.value) {
                Some(&position) => {
                    let entry = &mut entries[position];
                    entry.replaces = Some(entry.place);
                    entry.place = location;
                    entry.value = value;
                }
                None => {
                    positions.insert(key.value.clone(), entries.len());
                    entries.push(Entry {
                        key: key.value,
                        place: location,
                        value,
                        replaces: None,
                    });
                }
            }
        }
        Ok(Content::Map(entries))
    }
}

/// Formats the parser's message as one line, without the location, which is reported separately.
fn plain_message(error: &serde_saphyr::Error) -> String {
    let text = error.without_snippet().to_string();
    let first = text.lines().next().unwrap_or("not valid YAML");
    match first.find(" at line ") {
        Some(end) => first[..end].to_owned(),
        None => first.to_owned(),
    }
}

#[cfg(test)]
#[path = "document_tests.rs"]
mod tests;
