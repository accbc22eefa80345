//! The request of a chat completion as JSON: pure, from a model request and the entry's effective settings.

use serde_json::{Map, Value, json};

use super::calls::CALL_EXTRAS_KWARG;
use super::decode::REASONING_DETAILS_KWARG;
use super::dialect::Dialect;
use crate::messages::{Content, InvalidToolCall, Message, MessageKind, ToolCall, kwargs};
use crate::models::http::{Block, Settings, system_text};
use crate::models::{ModelRequest, ToolSchema};

/// The body to post.
pub(super) fn body(model: &str, settings: &Map<String, Value>, request: &ModelRequest, dialect: Dialect) -> Value {
    let mut body = Map::new();
    body.insert("model".to_owned(), json!(model));
    body.insert("messages".to_owned(), Value::Array(messages(request, dialect)));
    if !request.tools.is_empty() {
        body.insert("tools".to_owned(), request.tools.iter().map(tool).collect());
    }
    let streamed = !dialect.calls_in_text || request.tools.is_empty();
    body.insert("stream".to_owned(), json!(streamed));
    if streamed {
        body.insert("stream_options".to_owned(), json!({"include_usage": true}));
    }
    let mut settings = Settings::of(settings);
    if dialect.splits_reasoning {
        body.insert("reasoning_split".to_owned(), json!(true));
    }
    if dialect.reads_ollama_names {
        read_ollama_names(&mut settings, &mut body);
    }
    if dialect.renames_max_tokens
        && let Some(limit) = settings.take(&["max_completion_tokens", "max_tokens"])
    {
        body.insert("max_completion_tokens".to_owned(), limit);
    }
    settings.lay_onto(&mut body);
    if dialect.renames_thinking_switch
        && let Some(Value::Object(switches)) = body.get_mut("chat_template_kwargs")
        && let Some(thinking) = switches.shift_remove("thinking")
    {
        switches.entry("enable_thinking").or_insert(thinking);
    }
    Value::Object(body)
}

fn messages(request: &ModelRequest, dialect: Dialect) -> Vec<Value> {
    let mut list = Vec::with_capacity(request.messages.len() + 1);
    list.extend(system_text(request).map(|text| json!({"role": "system", "content": text})));
    list.extend(request.messages.iter().filter_map(|message| self::message(message, dialect)));
    list
}

fn message(message: &Message, dialect: Dialect) -> Option<Value> {
    let mut object = Map::new();
    let mut set = |key: &str, value: Value| object.insert(key.to_owned(), value);
    match &message.kind {
        MessageKind::System | MessageKind::Remove => return None,
        MessageKind::Human => {
            set("role", json!("user"));
            set("content", if dialect.flattens_content { json!(message.content.text()) } else { user_content(&message.content) });
        }
        MessageKind::Ai { tool_calls, invalid_tool_calls, .. } => {
            let text = message.content.text();
            let mut calls: Vec<Value> = tool_calls.iter().map(call).chain(invalid_tool_calls.iter().map(invalid_call)).collect();
            if dialect.returns_call_extras {
                return_extras(&mut calls, message.additional_kwargs.get(CALL_EXTRAS_KWARG));
            }
            set("role", json!("assistant"));
            set("content", if text.is_empty() && !calls.is_empty() { Value::Null } else { Value::String(text) });
            if let (Some(field), Some(reasoning)) = (dialect.reasoning_field, message.additional_kwargs.get(kwargs::REASONING_CONTENT)) {
                set(field, reasoning.clone());
            }
            if let Some(details) = message.additional_kwargs.get(REASONING_DETAILS_KWARG).filter(|_| dialect.returns_reasoning_details) {
                set("reasoning_details", details.clone());
            }
            if !calls.is_empty() {
                set("tool_calls", Value::Array(calls));
            }
        }
        MessageKind::Tool { tool_call_id, .. } => {
            set("role", json!("tool"));
            set("tool_call_id", json!(tool_call_id));
            set("content", json!(tool_text(&message.content)));
            return Some(Value::Object(object));
        }
    }
    if let Some(name) = message.name.as_deref().filter(|_| !dialect.drops_names).and_then(wire_name) {
        set("name", json!(name));
    }
    Some(Value::Object(object))
}

fn call(call: &ToolCall) -> Value {
    function_call(&call.id, &call.name, Value::Object(call.args.clone()).to_string())
}

/// A call whose arguments could not be read goes back as a readable one: strict servers parse the arguments of the history.
fn invalid_call(call: &InvalidToolCall) -> Value {
    let arguments = json!({"unreadable_arguments": call.args.as_deref().unwrap_or_default()}).to_string();
    function_call(call.id.as_deref().unwrap_or_default(), call.name.as_deref().unwrap_or_default(), arguments)
}

fn function_call(id: &str, name: &str, arguments: String) -> Value {
    json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}})
}

/// Puts what came with each call back beside it.
fn return_extras(calls: &mut [Value], extras: Option<&Value>) {
    for call in calls.iter_mut().filter_map(Value::as_object_mut) {
        let id = call.get("id").and_then(Value::as_str).unwrap_or_default();
        if let Some(Value::Object(extras)) = extras.and_then(|extras| extras.get(id)) {
            call.extend(extras.clone());
        }
    }
}

fn tool(tool: &ToolSchema) -> Value {
    json!({"type": "function", "function": {"name": tool.name, "description": tool.description, "parameters": tool.parameters}})
}

/// Tool results are text on this wire.
fn tool_text(content: &Content) -> String {
    let text = content.text();
    if text.is_empty() && !content.is_empty() { "(the result holds no text)".to_owned() } else { text }
}

fn user_content(content: &Content) -> Value {
    match content {
        Content::Text(text) => json!(text),
        Content::Blocks(blocks) => blocks.iter().filter_map(block).collect(),
    }
}

/// A content block as this wire has it. Images of other providers' shapes become data URLs; blocks that only models write
/// are left out; what is unknown passes through.
fn block(block: &Value) -> Option<Value> {
    // As it came: it may say in how much detail the image shall be seen.
    if block.get("image_url").is_some_and(Value::is_object) {
        return Some(block.clone());
    }
    match Block::read(block)? {
        Block::Text(text) => Some(json!({"type": "text", "text": text})),
        Block::Image(image) => Some(json!({"type": "image_url", "image_url": {"url": image.address()}})),
        Block::Model(_) => None,
        Block::Other(other) => other.is_object().then(|| other.clone()),
    }
}

/// Ollama's own words, in those of chat completions.
fn read_ollama_names(settings: &mut Settings, body: &mut Map<String, Value>) {
    if let Some(limit) = settings.take(&["max_tokens", "num_predict"]) {
        body.insert("max_tokens".to_owned(), limit);
    }
    let effort = match settings.take(&["reasoning"]) {
        Some(Value::Bool(false)) => Some(json!("none")),
        Some(level @ Value::String(_)) => Some(level),
        _ => None,
    };
    body.extend(effort.map(|effort| ("reasoning_effort".to_owned(), effort)));
}

/// A speaker's name in the alphabet that providers accept.
fn wire_name(name: &str) -> Option<String> {
    let name: String = name.chars().map(|c| if c.is_ascii_alphanumeric() || "_-".contains(c) { c } else { '_' }).take(64).collect();
    name.contains(|c: char| c != '_').then_some(name)
}

#[cfg(test)]
#[path = "wire_tests.rs"]
mod tests;
