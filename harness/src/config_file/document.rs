//! A YAML document as a tree whose every key and value remembers its line.

use std::collections::HashMap;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use serde_saphyr::{DuplicateKeyPolicy, Location, Spanned};

use super::error::SyntaxError;

/// Deepest nesting of a document. Real ones stay below ten; each level takes tens of KiB of stack while parsing.
const MAX_DEPTH: usize = 24;
/// Most keys, values and brackets of a document, counted again where an alias repeats them.
const MAX_EVENTS: usize = 100_000;

/// Line and column, both from 1; zero when unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Place {
    /// The line.
    pub line: u64,
    /// The column.
    pub column: u64,
}

impl From<Location> for Place {
    fn from(location: Location) -> Self {
        Self {
            line: location.line(),
            column: location.column(),
        }
    }
}

/// A value and where it stands.
#[derive(Debug, Clone)]
pub struct Node {
    /// Where it stands.
    pub place: Place,
    /// What it holds.
    pub content: Content,
}

/// What a [`Node`] holds.
#[derive(Debug, Clone)]
pub enum Content {
    /// Nothing.
    Null,
    /// A truth value.
    Bool(bool),
    /// A number.
    Number(Number),
    /// Text.
    Text {
        /// The text.
        text: String,
        /// The environment variable it came from.
        variable: Option<String>,
    },
    /// A list.
    List(Vec<Node>),
    /// A map, in the order of the file.
    Map(Vec<Entry>),
}

/// One key of a map with its value.
#[derive(Debug, Clone)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// Where the key stands.
    pub place: Place,
    /// Its value.
    pub value: Node,
    /// Where the same key stood before; the last one counts.
    pub replaces: Option<Place>,
}

impl Node {
    /// Reads one YAML document with a map at its root; an empty one is an empty map.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn parse(text: &str) -> Result<Self, SyntaxError> {
        let empty = || Self {
            place: Place { line: 1, column: 1 },
            content: Content::Map(Vec::new()),
        };
        Ok(Self::read(text)?.unwrap_or_else(empty))
    }

    /// Reads one YAML document with a map at its root; `None` when there is nothing in it.
    ///
    /// # Errors
    /// For what is no YAML, is beyond limits or has something else at its root; the place is told.
    pub fn read(text: &str) -> Result<Option<Self>, SyntaxError> {
        let options = serde_saphyr::options! {
            with_snippet: false,
            duplicate_keys: DuplicateKeyPolicy::PassThrough,
            budget: serde_saphyr::budget! { max_depth: MAX_DEPTH, max_events: MAX_EVENTS },
            alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: MAX_EVENTS },
        };
        let root: Option<Node> =
            serde_saphyr::from_str_with_options(text, options).map_err(|error| {
                let place = error.location().map(Place::from).unwrap_or_default();
                SyntaxError {
                    place,
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
                message: format!("the file holds {} where sections belong", content.kind()),
            }),
        }
    }

    /// The entries of a map; empty for anything else.
    pub fn entries(&self) -> &[Entry] {
        match &self.content {
            Content::Map(entries) => entries,
            _ => &[],
        }
    }

    /// The entry called `key`.
    pub fn entry(&self, key: &str) -> Option<&Entry> {
        self.entries().iter().find(|entry| entry.key == key)
    }

    /// Follows `path` as far as it leads: the node reached, and whether that is the whole way.
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

    /// The same value without places.
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
    /// Plain text that was written in the file.
    pub(super) fn text(text: impl Into<String>) -> Self {
        Self::Text {
            text: text.into(),
            variable: None,
        }
    }

    fn kind(&self) -> &'static str {
        match self {
            Self::Null => "nothing",
            Self::Bool(_) => "a truth value",
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
            let place = Place::from(key.referenced);
            match positions.get(&key.value) {
                Some(&position) => {
                    let entry = &mut entries[position];
                    entry.replaces = Some(entry.place);
                    entry.place = place;
                    entry.value = value;
                }
                None => {
                    positions.insert(key.value.clone(), entries.len());
                    entries.push(Entry {
                        key: key.value,
                        place,
                        value,
                        replaces: None,
                    });
                }
            }
        }
        Ok(Content::Map(entries))
    }
}

/// The parser's message in one line, without the place that is told separately.
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
