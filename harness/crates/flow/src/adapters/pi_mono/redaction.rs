//! Removal of secrets from values that leave the process or enter errors. Pure.

use secrecy::{ExposeSecret, SecretString};
use serde_json::{Map, Value};

/// Key of the engine's own notes, which are not sent.
const ENGINE_NOTES: &str = "_upstreamTraces";
/// Parts of names of secrets, in lower case without separators.
const SECRET_PARTS: &[&str] = &[
    "apikey",
    "secret",
    "password",
    "passwd",
    "passphrase",
    "credential",
    "authorization",
    "accesskey",
    "privatekey",
    "bearer",
    "cookie",
];
const REPLACEMENT: &str = "[redacted]";
/// Minimum length of a key that is replaced, in bytes. A shorter one occurs in words by chance.
pub(super) const MIN_KEY_BYTES: usize = 4;

/// Returns a configuration without the keys that look like secrets, at every depth.
pub(super) fn without_secrets(config: &Map<String, Value>) -> Map<String, Value> {
    let retained = config.iter().filter(|(key, _)| !is_internal(key));
    retained
        .map(|(key, value)| (key.clone(), without_nested(value)))
        .collect()
}

/// Returns an input without the engine's own notes.
pub(super) fn without_notes(input: &Map<String, Value>) -> Map<String, Value> {
    let mut input = input.clone();
    input.shift_remove(ENGINE_NOTES);
    input
}

fn without_nested(value: &Value) -> Value {
    match value {
        Value::Object(object) => Value::Object(without_secrets(object)),
        Value::Array(items) => Value::Array(items.iter().map(without_nested).collect()),
        other => other.clone(),
    }
}

fn is_internal(key: &str) -> bool {
    let plain: String = key
        .chars()
        .filter(|character| character.is_alphanumeric())
        .flat_map(char::to_lowercase)
        .collect();
    // `maxTokens` is no secret, `token`, `authToken` and `access_token` are.
    key == ENGINE_NOTES
        || plain == "auth"
        || plain.ends_with("token")
        || SECRET_PARTS.iter().any(|part| plain.contains(part))
}

/// Replaces the key in a text.
pub(super) fn redacted(text: &str, key: Option<&SecretString>) -> String {
    match key.map(ExposeSecret::expose_secret) {
        Some(key) if key.len() >= MIN_KEY_BYTES => text.replace(key, REPLACEMENT),
        _ => text.to_owned(),
    }
}

/// Replaces the key in all texts of a value.
pub(super) fn redacted_value(value: Value, key: Option<&SecretString>) -> Value {
    match value {
        Value::String(text) => Value::String(redacted(&text, key)),
        Value::Array(items) => items
            .into_iter()
            .map(|item| redacted_value(item, key))
            .collect(),
        Value::Object(object) => Value::Object(
            object
                .into_iter()
                .map(|(name, value)| (redacted(&name, key), redacted_value(value, key)))
                .collect(),
        ),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn secret_looking_keys_are_removed_at_every_depth() {
        let config = json!({
            "baseUrl": "http://h", "apiKey": "x", "api_key": "x", "client-secret": "x", "token": "x",
            "maxTokens": 5, "_upstreamTraces": [1],
            "headers": {"Authorization": "x", "accept": "a"}, "list": [{"password": "x", "a": 1}],
        });
        let sent = Value::Object(without_secrets(config.as_object().unwrap()));
        let expected = json!({
            "baseUrl": "http://h", "maxTokens": 5, "headers": {"accept": "a"}, "list": [{"a": 1}],
        });
        assert_eq!(sent, expected);
    }

    #[test]
    fn key_is_replaced_in_texts_of_values() {
        let key = SecretString::from("canary".to_owned());
        let value = redacted_value(json!({"a": ["x canary y", 1]}), Some(&key));
        assert_eq!(value, json!({"a": ["x [redacted] y", 1]}));
    }
}
