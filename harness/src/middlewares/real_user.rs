//! Which messages a person wrote.

use serde_json::Value;

pub use crate::messages::own_words as user_text;
use crate::messages::{Message, kwargs};

/// Whether a person wrote it: human, no summary, and not hidden, unless it answers a question of the agent.
pub fn is_real_user_message(message: &Message) -> bool {
    message.is_human()
        && message.name.as_deref() != Some("summary")
        && (!message.flag(kwargs::HIDE_FROM_UI) || message.additional_kwargs.get(kwargs::HUMAN_INPUT_RESPONSE).is_some_and(is_response))
}

/// `{version: 1, kind: "human_input_response", source, request_id, response_kind, value, option_id?}`, texts not empty.
fn is_response(value: &Value) -> bool {
    let text = |key: &str| value.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
    let kind = text("response_kind");
    value.get("version") == Some(&Value::from(1))
        && text("kind") == Some("human_input_response")
        && ["source", "request_id", "value"].into_iter().all(|key| text(key).is_some())
        && (kind == Some("text") || (kind == Some("option") && text("option_id").is_some()))
}
