//! Untyped keys. Their values may be secret, so they are neither serialised nor printed.

use std::fmt;
use std::ops::Deref;

use secrecy::SecretString;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

/// Map of keys that are interpreted by another component (a model provider, a tool, a later
/// section).
///
/// It dereferences to a [`Map`], has no `Serialize`, and `Debug` prints names only.
#[derive(Clone, Default, Deserialize)]
#[serde(transparent)]
pub struct OpenKeys(Map<String, Value>);

impl OpenKeys {
    /// Returns the text of `key` as a secret; `None` if it is absent, blank or not a text.
    pub fn secret(&self, key: &str) -> Option<SecretString> {
        match self.0.get(key) {
            Some(Value::String(text)) if !text.is_empty() => {
                Some(SecretString::from(text.as_str()))
            }
            _ => None,
        }
    }

    /// Returns the text of `key`; `None` if it is absent, blank or not a text.
    pub fn text(&self, key: &str) -> Option<&str> {
        self.0
            .get(key)
            .and_then(Value::as_str)
            .filter(|text| !text.is_empty())
    }

    /// Adds or replaces a key and returns its previous value.
    pub fn insert(&mut self, key: impl Into<String>, value: Value) -> Option<Value> {
        self.0.insert(key.into(), value)
    }

    /// Returns the value of `key` for writing; inserts null if it is absent.
    pub(super) fn slot(&mut self, key: &str) -> &mut Value {
        self.0.entry(key).or_insert(Value::Null)
    }

    /// Removes a key and returns its value.
    pub fn remove(&mut self, key: &str) -> Option<Value> {
        self.0.shift_remove(key)
    }
}

impl Deref for OpenKeys {
    type Target = Map<String, Value>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl From<Map<String, Value>> for OpenKeys {
    fn from(map: Map<String, Value>) -> Self {
        Self(map)
    }
}

impl fmt::Debug for OpenKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// Deserializes a secret; a blank text, as in `postgres_url: ""`, counts as absent.
pub(super) fn optional_secret<'de, D>(deserializer: D) -> Result<Option<SecretString>, D::Error>
where
    D: Deserializer<'de>,
{
    let text = Option::<String>::deserialize(deserializer)?;
    Ok(text.filter(|text| !text.is_empty()).map(SecretString::from))
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret;
    use serde_json::json;

    use super::*;

    fn sample() -> OpenKeys {
        serde_json::from_value(json!({"api_key": "sk-canary", "timeout": 5, "blank": ""})).unwrap()
    }

    #[test]
    fn debug_prints_keys_without_values() {
        let text = format!("{:?}", sample());
        assert!(text.contains("api_key"));
        assert!(!text.contains("canary"));
    }

    #[test]
    fn blank_or_non_text_secret_is_none() {
        let keys = sample();
        assert_eq!(keys.secret("api_key").unwrap().expose_secret(), "sk-canary");
        assert!(keys.secret("blank").is_none());
        assert!(keys.secret("timeout").is_none());
        assert!(keys.secret("missing").is_none());
    }
}
