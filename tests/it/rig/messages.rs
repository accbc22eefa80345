//! Bodies of run requests, and the messages of a state.

use serde_json::{Value, json};

use super::MODEL;

/// Returns the body that the web UI sends for a message; only model and text differ.
pub(crate) fn body(prompt: &str) -> Value {
    json!({
        "input": {"messages": [{"type": "human", "content": [{"type": "text", "text": prompt}], "additional_kwargs": {}}]},
        "config": {"recursion_limit": 1000},
        "context": {
            "thread_id": "T", "model_name": MODEL, "mode": "flash",
            "thinking_enabled": false, "is_plan_mode": false, "subagent_enabled": false,
        },
        "stream_mode": ["values", "messages-tuple", "updates", "custom"],
        "stream_subgraphs": false,
        "assistant_id": "lead_agent",
        "on_disconnect": "continue",
    })
}

/// Returns [`body`] with added or replaced keys.
pub(crate) fn body_with(prompt: &str, more: Value) -> Value {
    let mut body = body(prompt);
    for (key, value) in more.as_object().expect("an object") {
        body[key] = value.clone();
    }
    body
}

/// Returns a JSON string.
#[track_caller]
pub(crate) fn text(value: &Value) -> &str {
    value
        .as_str()
        .unwrap_or_else(|| panic!("not a string: {value}"))
}

/// Returns a JSON array.
#[track_caller]
pub(crate) fn list(value: &Value) -> &[Value] {
    value
        .as_array()
        .unwrap_or_else(|| panic!("not a list: {value}"))
}

/// Returns the text of a message, whichever form its content has.
pub(crate) fn message_text(message: &Value) -> String {
    match &message["content"] {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => blocks
            .iter()
            .filter_map(|block| block["text"].as_str())
            .collect(),
        _ => String::new(),
    }
}

/// Returns the messages that a user sees as (type, text).
pub(crate) fn visible_messages(values: &Value) -> Vec<(String, String)> {
    let messages = values["messages"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    let visible = messages.iter().filter(|message| {
        message["type"] != "system" && message["additional_kwargs"]["hide_from_ui"] != true
    });
    visible
        .map(|message| (text(&message["type"]).to_owned(), message_text(message)))
        .collect()
}

/// Builds the expected result of [`visible_messages`].
pub(crate) fn messages_of(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs
        .iter()
        .map(|(role, what)| ((*role).to_owned(), (*what).to_owned()))
        .collect()
}
