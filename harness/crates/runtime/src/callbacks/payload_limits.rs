//! Limits of a payload in the journal, and their check on JSON text without a tree of its values.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// Maximum size of all texts and names of a payload in bytes. A payload that was cut to the
/// narrowest limits may exceed it.
pub(super) const MAX_BYTES: usize = 48 << 10;
/// Maximum characters of a name.
pub(super) const MAX_NAME: usize = 200;
/// Maximum depth of a payload.
pub(super) const MAX_DEPTH: usize = 12;
/// Depth from which the number of entries is limited: above it are the fields of the event itself.
pub(super) const OPEN_DEPTH: usize = 2;
/// Estimated size of a number, a boolean or `null`, in bytes.
pub(super) const SCALAR_BYTES: usize = 8;

/// Limits of the values of a payload.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Maximum characters of one text.
    pub(super) text: usize,
    /// Maximum number of entries of a list or an object.
    pub(super) entries: usize,
}

impl Limits {
    pub(super) const fn new(text: usize, entries: usize) -> Self {
        Self { text, entries }
    }

    /// Limits texts to `max_chars` as well.
    pub(super) fn with(self, max_chars: usize) -> Self {
        let text = max_chars.clamp(MAX_NAME, self.text.max(MAX_NAME));
        Self { text, ..self }
    }
}

/// Reports whether a copy within these limits would equal the payload.
pub(super) fn is_within(json: &str, limits: Limits) -> bool {
    let mut bytes = 0;
    let check = Check {
        limits,
        depth: 0,
        bytes: &mut bytes,
    };
    let mut json = serde_json::Deserializer::from_str(json);
    check.deserialize(&mut json).is_ok()
}

/// Check of one value. It fails at the first limit that the value exceeds.
struct Check<'a> {
    limits: Limits,
    depth: usize,
    /// Size of the values so far, estimated.
    bytes: &'a mut usize,
}

impl Check<'_> {
    fn inner(&mut self) -> Check<'_> {
        Check {
            limits: self.limits,
            depth: self.depth + 1,
            bytes: self.bytes,
        }
    }

    fn name(&mut self) -> Name<'_> {
        Name(Check {
            limits: Limits {
                text: MAX_NAME,
                ..self.limits
            },
            ..self.inner()
        })
    }

    fn add<E: Error>(&mut self, bytes: usize) -> Result<(), E> {
        *self.bytes += bytes;
        within(*self.bytes, MAX_BYTES)
    }

    /// Starts a list or an object, and returns its maximum number of entries.
    fn open<E: Error>(&self) -> Result<usize, E> {
        within(self.depth + 1, MAX_DEPTH)?;
        Ok(if self.depth < OPEN_DEPTH {
            usize::MAX
        } else {
            self.limits.entries
        })
    }
}

fn within<E: Error>(value: usize, max: usize) -> Result<(), E> {
    if value <= max {
        Ok(())
    } else {
        Err(E::custom("a limit is exceeded"))
    }
}

impl<'de> DeserializeSeed<'de> for Check<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Check<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E: Error>(mut self) -> Result<(), E> {
        self.add(SCALAR_BYTES)
    }

    fn visit_bool<E: Error>(mut self, _: bool) -> Result<(), E> {
        self.add(SCALAR_BYTES)
    }

    fn visit_i64<E: Error>(mut self, _: i64) -> Result<(), E> {
        self.add(SCALAR_BYTES)
    }

    fn visit_u64<E: Error>(mut self, _: u64) -> Result<(), E> {
        self.add(SCALAR_BYTES)
    }

    fn visit_f64<E: Error>(mut self, _: f64) -> Result<(), E> {
        self.add(SCALAR_BYTES)
    }

    fn visit_str<E: Error>(mut self, text: &str) -> Result<(), E> {
        if text.len() > self.limits.text {
            within(text.chars().count(), self.limits.text)?;
        }
        self.add(text.len())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<(), A::Error> {
        let max = self.open()?;
        let mut entries = 0;
        while items.next_element_seed(self.inner())?.is_some() {
            entries += 1;
            within(entries, max)?;
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut fields: A) -> Result<(), A::Error> {
        let max = self.open()?;
        let mut entries = 0;
        while fields.next_key_seed(self.name())?.is_some() {
            fields.next_value_seed(self.inner())?;
            entries += 1;
            within(entries, max)?;
        }
        Ok(())
    }
}

/// Check of the name of a field.
struct Name<'a>(Check<'a>);

impl<'de> DeserializeSeed<'de> for Name<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, name: D) -> Result<(), D::Error> {
        name.deserialize_str(self.0)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn each_limit_is_the_last_value_that_is_within() {
        let limits = Limits {
            text: 300,
            entries: 5,
        };
        let is_within = |value: &Value| is_within(&value.to_string(), limits);
        let nested = |depth| (0..depth).fold(json!(1), |inner, _| json!([inner]));
        let fields = |length: usize| json!([[{ "n".repeat(length): 1 }]]);
        assert!(is_within(&json!("é".repeat(300))) && !is_within(&json!("é".repeat(301))));
        assert!(is_within(&json!([[vec![0; 5]]])) && !is_within(&json!([[vec![0; 6]]])));
        assert!(
            is_within(&json!([vec![0; 6]])),
            "fields of the event itself"
        );
        assert!(is_within(&nested(12)) && !is_within(&nested(13)));
        assert!(is_within(&fields(200)) && !is_within(&fields(201)));
        let texts = |count: usize| json!([vec!["x".repeat(256); count]]);
        assert!(is_within(&texts(192)) && !is_within(&texts(193)));
    }
}
