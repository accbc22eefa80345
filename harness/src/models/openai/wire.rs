//! The request of a chat completion as JSON: pure, from a model request and the entry's effective settings.

use serde_json::{Map, Value, json};

use super::calls::CALL_EXTRAS_KWARG;
use super::dialect::Dialect;
use crate::messages::{Content, InvalidToolCall, Message, MessageKind, ToolCall, kwargs};
use crate::models::{ModelRequest, ToolSchema};

/// Settings that steer this side, or name things of the provider's own library. They are never sent.
const NOT_SENT: &[&str] = &[
    "api_base",
    "api_key",
    "base_url",
    "cache",
    "callbacks",
    "custom_get_token_ids",
    "deepseek_api_key",
    "default_headers",
    "default_query",
    "default_request_timeout",
    "disable_streaming",
    "disabled_params",
    "extra_body",
    "http_async_client",
    "http_client",
    "include_response_headers",
    "max_retries",
    "metadata",
    "model",
    "model_kwargs",
    "model_name",
    "openai_api_base",
    "openai_api_key",
    "openai_organization",
    "openai_proxy",
    "organization",
    "output_version",
    "profile",
    "rate_limiter",
    "request_timeout",
    "stream",
    "stream_chunk_timeout",
    "stream_usage",
    "streaming",
    "tags",
    "tiktoken_model_name",
    "timeout",
    "use_previous_response_id",
    "use_responses_api",
    "verbose",
    "vllm_api_key",
];

/// The body to post.
pub(super) fn body(model: &str, settings: &Map<String, Value>, request: &ModelRequest, dialect: Dialect) -> Value {
    let mut body = Map::new();
    body.insert("model".to_owned(), json!(model));
    body.insert("messages".to_owned(), Value::Array(messages(request, dialect)));
    if !request.tools.is_empty() {
        body.insert("tools".to_owned(), request.tools.iter().map(tool).collect());
    }
    body.insert("stream".to_owned(), json!(true));
    body.insert("stream_options".to_owned(), json!({"include_usage": true}));
    let own = settings.iter().filter(|(key, value)| !NOT_SENT.contains(&key.as_str()) && !value.is_null());
    body.extend(own.map(|(key, value)| (key.clone(), value.clone())));
    if dialect.splits_reasoning {
        body.insert("reasoning_split".to_owned(), json!(true));
    }
    if dialect.renames_max_tokens
        && let Some(limit) = body.shift_remove("max_tokens")
    {
        body.entry("max_completion_tokens").or_insert(limit);
    }
    for key in ["model_kwargs", "extra_body"] {
        if let Some(Value::Object(more)) = settings.get(key) {
            body.extend(more.clone());
        }
    }
    if dialect.renames_thinking_switch
        && let Some(Value::Object(switches)) = body.get_mut("chat_template_kwargs")
        && let Some(thinking) = switches.shift_remove("thinking")
    {
        switches.entry("enable_thinking").or_insert(thinking);
    }
    Value::Object(body)
}

fn messages(request: &ModelRequest, dialect: Dialect) -> Vec<Value> {
    let own = request.system.as_deref().map(str::to_owned);
    let others =
        request.messages.iter().filter(|message| matches!(message.kind, MessageKind::System)).map(|message| message.content.text());
    let system: Vec<String> = own.into_iter().chain(others).filter(|text| !text.is_empty()).collect();
    let mut list = Vec::with_capacity(request.messages.len() + 1);
    if !system.is_empty() {
        list.push(json!({"role": "system", "content": system.join("\n\n")}));
    }
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
            set("content", user_content(&message.content));
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
    let field = |key: &str| block.get(key).and_then(Value::as_str);
    match (block, field("type")) {
        (Value::String(text), _) => Some(json!({"type": "text", "text": text})),
        (_, Some("text")) => Some(json!({"type": "text", "text": field("text").unwrap_or_default()})),
        (_, Some("thinking" | "redacted_thinking" | "reasoning" | "tool_use" | "tool_call")) => None,
        (_, Some("image_url")) => match block.get("image_url") {
            Some(Value::String(url)) => Some(image(url)),
            _ => Some(block.clone()),
        },
        (_, Some("image")) => Some(image(&image_source(block)?)),
        (Value::Object(_), _) => Some(block.clone()),
        _ => None,
    }
}

fn image_source(block: &Value) -> Option<String> {
    let place = block.get("source").filter(|source| source.is_object()).unwrap_or(block);
    let field = |keys: &[&str]| keys.iter().find_map(|key| place.get(*key)?.as_str());
    if let Some(url) = field(&["url"]) {
        return Some(url.to_owned());
    }
    let mime = field(&["mime_type", "media_type"]).unwrap_or("image/png");
    field(&["base64", "data"]).map(|data| format!("data:{mime};base64,{data}"))
}

fn image(url: &str) -> Value {
    json!({"type": "image_url", "image_url": {"url": url}})
}

/// A speaker's name in the alphabet that providers accept.
fn wire_name(name: &str) -> Option<String> {
    let name: String = name.chars().map(|c| if c.is_ascii_alphanumeric() || "_-".contains(c) { c } else { '_' }).take(64).collect();
    name.contains(|c: char| c != '_').then_some(name)
}

#[cfg(test)]
#[path = "wire_tests.rs"]
mod tests;
