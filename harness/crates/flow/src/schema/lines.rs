//! Lines of the values of a text, found only when a problem needs them.

use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_saphyr::Spanned;

use super::syntax::yaml_options;

/// Lines of a value and of the values in it.
#[derive(Debug)]
pub(super) struct Lines {
    pub(super) line: u64,
    pub(super) inner: Inner,
}

/// Lines of the values in a value.
#[derive(Debug)]
pub(super) enum Inner {
    Scalar,
    List(Vec<Lines>),
    /// Key, line of the key, value.
    Map(Vec<(String, u64, Lines)>),
}

impl Lines {
    /// Reads the lines of a YAML text.
    pub(super) fn read(text: &str) -> Option<Self> {
        serde_saphyr::from_str_with_options(text, yaml_options()).ok()
    }

    /// Returns the line of the value at a JSON pointer, or of the nearest value around it.
    pub(super) fn find(&self, pointer: &str) -> Option<u64> {
        let mut node = self;
        let mut line = self.line;
        for segment in pointer.split('/').skip(1) {
            let segment = segment.replace("~1", "/").replace("~0", "~");
            let next = match &node.inner {
                Inner::List(items) => segment
                    .parse()
                    .ok()
                    .and_then(|index: usize| items.get(index))
                    .map(|item| (item.line, item)),
                Inner::Map(entries) => entries
                    .iter()
                    .find(|(key, ..)| *key == segment)
                    .map(|(_, line, value)| (*line, value)),
                Inner::Scalar => None,
            };
            let Some((next_line, next)) = next else {
                break;
            };
            (line, node) = (next_line, next);
        }
        (line > 0).then_some(line)
    }
}

impl<'de> Deserialize<'de> for Lines {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<Inner>::deserialize(deserializer)?;
        Ok(Self {
            line: spanned.referenced.line(),
            inner: spanned.value,
        })
    }
}

impl<'de> Deserialize<'de> for Inner {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(InnerVisitor)
    }
}

struct InnerVisitor;

impl<'de> Visitor<'de> for InnerVisitor {
    type Value = Inner;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Inner, E> {
        Ok(Inner::Scalar)
    }

    fn visit_none<E>(self) -> Result<Inner, E> {
        Ok(Inner::Scalar)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Inner, E> {
        Ok(Inner::Scalar)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Inner, E> {
        Ok(Inner::Scalar)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Inner, E> {
        Ok(Inner::Scalar)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Inner, E> {
        Ok(Inner::Scalar)
    }

    fn visit_str<E>(self, _: &str) -> Result<Inner, E> {
        Ok(Inner::Scalar)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Inner, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, inner: D) -> Result<Inner, D::Error> {
        IgnoredAny::deserialize(inner).map(|_| Inner::Scalar)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Inner, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            items.push(item);
        }
        Ok(Inner::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Inner, A::Error> {
        let mut entries = Vec::new();
        while let Some((key, value)) = map.next_entry::<Spanned<String>, Lines>()? {
            entries.push((key.value, key.referenced.line(), value));
        }
        Ok(Inner::Map(entries))
    }
}
