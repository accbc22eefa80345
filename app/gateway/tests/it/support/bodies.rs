//! Bodies of requests.

use serde_json::{Value, json};

/// Returns a run request with one message.
pub(crate) fn saying(text: &str) -> Value {
    json!({ "assistant_id": "lead_agent", "input": { "messages": [{ "type": "human", "content": text }] } })
}

/// Returns `saying` with additional fields.
pub(crate) fn saying_with(text: &str, more: Value) -> Value {
    let mut body = saying(text);
    for (key, value) in more.as_object().expect("an object") {
        body[key] = value.clone();
    }
    body
}
