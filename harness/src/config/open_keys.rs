//! Keys that pass through as written: shown by name only, never serialized, since any may hold a secret.

use std::fmt;
use std::ops::Deref;

use secrecy::SecretString;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

/// A map of keys whose meaning belongs to whoever reads them (a model provider, a tool, a later section).
///
/// Reads like a [`Map`]. It has no `Serialize`, and `Debug` prints the names and hides the values.
#[derive(Clone, Default, Deserialize)]
#[serde(transparent)]
pub struct OpenKeys(Map<String, Value>);

impl OpenKeys {
    /// The text under `key` as a secret; `None` when absent, blank or not text.
    pub fn secret(&self, key: &str) -> Option<SecretString> {
        match self.0.get(key) {
            Some(Value::String(text)) if !text.is_empty() => {
                Some(SecretString::from(text.as_str()))
            }
            _ => None,
        }
    }

    /// The text under `key`; `None` when absent, blank or not text.
    pub fn text(&self, key: &str) -> Option<&str> {
        self.0
            .get(key)
            .and_then(Value::as_str)
            .filter(|text| !text.is_empty())
    }

    /// Adds or replaces one key, giving back what stood there.
    pub fn insert(&mut self, key: impl Into<String>, value: Value) -> Option<Value> {
        self.0.insert(key.into(), value)
    }

    /// The place of `key`, null when nothing was there.
    pub(super) fn slot(&mut self, key: &str) -> &mut Value {
        self.0.entry(key).or_insert(Value::Null)
    }

    /// Takes one key out.
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

/// Reads a secret where blank means absent, as `postgres_url: ""` does.
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
    fn debug_names_the_keys_and_hides_the_values() {
        let text = format!("{:?}", sample());
        assert!(text.contains("api_key"));
        assert!(!text.contains("canary"));
    }

    #[test]
    fn a_blank_or_untextual_secret_is_absent() {
        let keys = sample();
        assert_eq!(keys.secret("api_key").unwrap().expose_secret(), "sk-canary");
        assert!(keys.secret("blank").is_none());
        assert!(keys.secret("timeout").is_none());
        assert!(keys.secret("missing").is_none());
    }
}
