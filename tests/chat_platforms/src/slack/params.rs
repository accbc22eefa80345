//! Parameters of a call, from a form or from JSON.

use http::{HeaderMap, header};
use percent_encoding::percent_decode_str;
use serde_json::{Map, Value};

use super::answer::Failure;

/// Methods that read forms only, as the platform's reading methods do.
const FORM_ONLY: &[&str] = &[
    "conversations.history",
    "conversations.info",
    "conversations.replies",
    "files.getUploadURLExternal",
    "files.info",
];

/// Decoded parameters.
#[derive(Debug, Clone, Default)]
pub(super) struct Params(pub(super) Map<String, Value>);

impl Params {
    /// Decodes the body and the query of a call.
    pub(super) fn decode(
        method: &str,
        headers: &HeaderMap,
        query: &str,
        body: &[u8],
    ) -> Result<Self, Failure> {
        let mut fields = form(query);
        let kind = headers
            .get(header::CONTENT_TYPE)
            .and_then(|kind| kind.to_str().ok())
            .unwrap_or_default();
        if kind.starts_with("application/json") {
            if !body.is_empty() {
                let Ok(Value::Object(object)) = serde_json::from_slice(body) else {
                    return Err(Failure::new("invalid_json"));
                };
                if !FORM_ONLY.contains(&method) {
                    fields.extend(object);
                }
            }
        } else if kind.starts_with("application/x-www-form-urlencoded") {
            fields.extend(form(&String::from_utf8_lossy(body)));
        } else if !body.is_empty() {
            return Err(Failure::new("invalid_post_type"));
        }
        Ok(Self(fields))
    }

    /// Returns a parameter as text.
    pub(super) fn text(&self, name: &str) -> Option<String> {
        match self.0.get(name)? {
            Value::String(text) if text.is_empty() => None,
            Value::String(text) => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            Value::Bool(flag) => Some(flag.to_string()),
            _ => None,
        }
    }

    /// Returns a required parameter as text.
    pub(super) fn required(&self, name: &str) -> Result<String, Failure> {
        self.text(name)
            .ok_or_else(|| Failure::argument(&format!("missing required field: {name}")))
    }

    /// Returns a parameter that is JSON, or JSON in a text.
    pub(super) fn json(&self, name: &str) -> Option<Value> {
        match self.0.get(name)? {
            Value::String(text) => serde_json::from_str(text).ok(),
            Value::Null => None,
            other => Some(other.clone()),
        }
    }

    /// Returns `true` for a parameter that is set.
    pub(super) fn flag(&self, name: &str) -> bool {
        matches!(self.text(name).as_deref(), Some("true" | "1"))
    }
}

/// Decodes a form.
fn form(text: &str) -> Map<String, Value> {
    let decoded = |part: &str| {
        let spaced = part.replace('+', " ");
        percent_decode_str(&spaced).decode_utf8_lossy().into_owned()
    };
    text.split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decoded(name), Value::String(decoded(value)))
        })
        .collect()
}
