//! Identifies messages that a user wrote.

use serde_json::Value;

pub use crate::messages::user_text;
use crate::messages::{Message, MessageBody, kwargs};
use crate::tools::builtins::ASK_CLARIFICATION;

/// Reports whether a user wrote the message: it is human, no summary, and visible, or it answers a
/// question of the agent.
pub fn is_real_user_message(message: &Message) -> bool {
    message.is_human() && is_of_a_user(message.without_frame())
}

/// Reports whether a user wrote the human message with these fields.
pub(super) fn is_of_a_user(message: &MessageBody) -> bool {
    message.name.as_deref() != Some("summary")
        && (!message.flag(kwargs::HIDE_FROM_UI)
            || message
                .additional_kwargs
                .get(kwargs::HUMAN_INPUT_RESPONSE)
                .is_some_and(is_response))
}

/// Reports whether a user's message answers a question of the agent, so that the request in
/// `before` continues.
pub(super) fn answers_agent(message: &Message, before: &[&Message]) -> bool {
    let is_result = |message: &&&Message| message.is_result();
    let asked_question = || {
        let last = before.iter().rev().find(|message| !is_result(message))?;
        Some(
            last.tool_calls()
                .iter()
                .any(|call| call.name == ASK_CLARIFICATION),
        )
    };
    message
        .additional_kwargs
        .get(kwargs::HUMAN_INPUT_RESPONSE)
        .is_some_and(is_response)
        || asked_question().unwrap_or(false)
}

/// Reports whether the value is `{version: 1, kind: "human_input_response", source, request_id,
/// response_kind, value, option_id?}` with non-empty texts.
fn is_response(value: &Value) -> bool {
    let text = |key: &str| {
        value
            .get(key)
            .and_then(Value::as_str)
            .filter(|text| !text.is_empty())
    };
    let kind = text("response_kind");
    value.get("version") == Some(&Value::from(1))
        && text("kind") == Some("human_input_response")
        && ["source", "request_id", "value"]
            .into_iter()
            .all(|key| text(key).is_some())
        && (kind == Some("text") || (kind == Some("option") && text("option_id").is_some()))
}
