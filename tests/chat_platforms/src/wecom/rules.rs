//! Rules that the platform enforces.

use std::time::Duration;

use serde_json::{Value, json};

/// Maximum length of a text in bytes.
pub(super) const MAX_TEXT_BYTES: usize = 20_480;
/// Time after its last update in which a stream expires.
pub(super) const IDLE: Duration = Duration::from_secs(6 * 60);
/// Time after its beginning in which a stream expires.
pub(super) const LIFETIME: Duration = Duration::from_secs(10 * 60);

/// Refused frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) code: i64,
    pub(super) message: String,
}

impl Refusal {
    pub(super) fn new(code: i64, message: &str) -> Self {
        Self {
            code,
            message: message.to_owned(),
        }
    }
}

/// Invalid parameter.
pub(super) fn invalid(message: &str) -> Refusal {
    Refusal::new(40_035, &format!("invalid parameter: {message}"))
}

/// Request of another connection, or unknown.
pub(super) fn unknown_request() -> Refusal {
    Refusal::new(846_605, "invalid req_id")
}

/// Stream that cannot be updated any more.
pub(super) fn expired() -> Refusal {
    Refusal::new(846_608, "stream message update expired")
}

/// Second frame before the answer to the first.
pub(super) fn unanswered() -> Refusal {
    Refusal::new(846_607, "previous frame of this req_id is not answered")
}

/// Too many messages.
pub(super) fn too_many() -> Refusal {
    Refusal::new(45_009, "api freq out of limit")
}

/// Builds the answer to a frame.
pub(super) fn answer(req_id: &str, result: &Result<Value, Refusal>) -> Value {
    match result {
        Ok(Value::Null) => json!({"headers": {"req_id": req_id}, "errcode": 0, "errmsg": "ok"}),
        Ok(body) => {
            json!({"headers": {"req_id": req_id}, "errcode": 0, "errmsg": "ok", "body": body})
        }
        Err(refusal) => json!({
            "headers": {"req_id": req_id},
            "errcode": refusal.code,
            "errmsg": refusal.message,
        }),
    }
}

/// Returns an error if an object has other keys than these.
pub(super) fn only(object: &Value, keys: &[&str]) -> Result<(), Refusal> {
    let unknown = object
        .as_object()
        .and_then(|object| object.keys().find(|key| !keys.contains(&key.as_str())));
    match unknown {
        Some(key) => Err(invalid(&format!("unknown field {key}"))),
        None if object.is_object() => Ok(()),
        None => Err(invalid("not an object")),
    }
}

/// Returns a text within the limit.
pub(super) fn text(value: &Value) -> Result<&str, Refusal> {
    let text = value
        .as_str()
        .ok_or_else(|| invalid("content is not a text"))?;
    if text.len() > MAX_TEXT_BYTES {
        return Err(Refusal::new(40_058, "content is longer than 20480 bytes"));
    }
    Ok(text)
}
