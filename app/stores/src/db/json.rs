//! Columns that hold JSON text, or a word of an enum.

use serde::de::DeserializeOwned;
use serde_json::Value;

/// Serialises a value whose serialisation cannot fail.
pub(crate) fn json_text(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).unwrap_or_else(|error| {
        tracing::error!(%error, "cannot serialise a value to json");
        "null".to_owned()
    })
}

/// Parses stored JSON text.
pub(crate) fn from_json<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

/// Parses a stored word.
pub(crate) fn from_word<T: DeserializeOwned>(word: String) -> Result<T, String> {
    serde_json::from_value(Value::String(word)).map_err(|error| error.to_string())
}
