//! Builds the JSON request of a chat completion. Pure: depends only on the model request and the
//! effective settings.

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::calls::CALL_EXTRAS_KWARG;
use super::decode::REASONING_DETAILS_KWARG;
use super::dialect::Dialect;
use super::user_message::{UserMessage, image_url, sent_name};
use crate::http::{
    Block, JsonPart, RequestBody, Settings, ToolTexts, blocks, short_id, system_text, tool_name,
};
use crate::{ModelRequest, ToolSchema};
use deerflow_core::json_size::raw_value;
use deerflow_core::messages::{Content, InvalidToolCall, Message, MessageKind, ToolCall, kwargs};

/// Maximum length of a call's id that the API accepts.
const MAX_ID_CHARS: usize = 40;

/// Number of consecutive messages whose JSON is joined for later requests.
const JOINED_MESSAGES: usize = 64;

/// Builds the request body.
pub(super) fn body(
    model: &str,
    settings: &Map<String, Value>,
    request: &ModelRequest,
    dialect: Dialect,
    tools: &ToolTexts,
) -> RequestBody {
    let counted = settings.get("stream_usage") != Some(&Value::Bool(false));
    let mut body = RequestBody::default();
    body.insert("model", json!(model));
    body.insert("messages", JsonPart::List(messages(request, dialect)));
    if !request.tools.is_empty() {
        let tools = tools.of(&request.tools, |list| list.iter().map(tool).collect());
        body.insert("tools", tools);
    }
    let streamed = !dialect.calls_in_text || request.tools.is_empty();
    body.insert("stream", json!(streamed));
    if streamed && counted {
        body.insert("stream_options", json!({"include_usage": true}));
    }
    let mut settings = Settings::of(settings);
    if dialect.splits_reasoning {
        body.insert("reasoning_split", json!(true));
    }
    if dialect.accepts_ollama_names {
        rename_ollama_settings(&mut settings, &mut body);
    }
    if dialect.renames_max_tokens
        && let Some(limit) = settings.take(&["max_completion_tokens", "max_tokens"])
    {
        body.insert("max_completion_tokens", limit);
    }
    settings.merge_into(&mut body);
    if dialect.renames_thinking_switch
        && let Some(switches) = body.object_mut("chat_template_kwargs")
        && let Some(thinking) = switches.shift_remove("thinking")
    {
        switches.entry("enable_thinking").or_insert(thinking);
    }
    body
}

fn messages(request: &ModelRequest, dialect: Dialect) -> Vec<JsonPart> {
    let format = dialect.message_format();
    let mut list = Vec::with_capacity(request.messages.len() + 1);
    let system = system_text(request);
    list.extend(system.map(|text| json!({"role": "system", "content": text}).into()));
    // Results cannot contain images on this wire. The images follow after all results of a batch,
    // because the batch must not be interrupted.
    let mut images = Vec::new();
    for messages in request.messages.chunks(JOINED_MESSAGES) {
        let may_join = messages.len() == JOINED_MESSAGES && images.is_empty();
        if may_join && let Some(joined) = Message::joined_wire_json(messages, format) {
            list.push(JsonPart::Joined(joined));
            continue;
        }
        let (mut has_images, first) = (false, list.len());
        for message in messages {
            let sent = sent(message, dialect);
            if message.is_result() {
                images.extend(images_of(&message.content).filter(|_| dialect.accepts_images));
                has_images |= !images.is_empty();
            } else if sent.is_some() {
                list.extend(images_as_user_message(&mut images));
            }
            list.extend(sent);
        }
        if may_join
            && !has_images
            && let Some(joined) = Message::join_wire_json(messages, format)
        {
            // Frees the texts that were joined.
            list.truncate(first);
            list.push(JsonPart::Joined(joined));
        }
    }
    list.extend(images_as_user_message(&mut images));
    list
}

/// Returns the JSON of a message; `None` if the API has no such message.
fn sent(message: &Message, dialect: Dialect) -> Option<JsonPart> {
    let build = |message: &Message| json(message, dialect);
    if !message.is_large() {
        let json = message.wire_json(dialect.message_format(), build);
        return json.map(JsonPart::Text);
    }
    let json = String::from(Box::<str>::from(build(message)?));
    Some(JsonPart::Joined(json.into()))
}

/// Serializes a message; `None` if the API has no such message.
fn json(message: &Message, dialect: Dialect) -> Option<Box<RawValue>> {
    let json = if message.is_human() {
        let framed = message.framed_text();
        raw_value(&UserMessage::new(message.without_frame(), framed, dialect))
    } else {
        raw_value(&self::message(message, dialect)?)
    };
    // A message of JSON values is serialized without errors.
    json.ok()
}

/// Converts an answer or a result; `None` for other messages.
fn message(message: &Message, dialect: Dialect) -> Option<Value> {
    let mut object = Map::new();
    let mut set = |key: &str, value: Value| object.insert(key.to_owned(), value);
    match &message.kind {
        MessageKind::System | MessageKind::Remove | MessageKind::Human => return None,
        MessageKind::Ai {
            tool_calls,
            invalid_tool_calls,
            ..
        } => {
            let text = message.content.text();
            let extras = message
                .additional_kwargs
                .get(CALL_EXTRAS_KWARG)
                .filter(|_| dialect.returns_call_extras);
            let readable = tool_calls
                .iter()
                .map(|call| with_extras(self::call(call), &call.id, extras));
            let unreadable = invalid_tool_calls.iter().map(|call| {
                with_extras(
                    invalid_call(call),
                    call.id.as_deref().unwrap_or_default(),
                    extras,
                )
            });
            let calls: Vec<Value> = readable.chain(unreadable).collect();
            set("role", json!("assistant"));
            set(
                "content",
                if text.is_empty() && !calls.is_empty() {
                    Value::Null
                } else {
                    Value::String(text)
                },
            );
            let reasoning = message
                .additional_kwargs
                .get(kwargs::REASONING_CONTENT)
                .and_then(Value::as_str);
            let reasoning = reasoning
                .filter(|reasoning| !reasoning.is_empty())
                .or(dialect.reasoning_placeholder);
            if let Some((field, reasoning)) = dialect.reasoning_field.zip(reasoning) {
                set(field, json!(reasoning));
            }
            if let Some(details) = message
                .additional_kwargs
                .get(REASONING_DETAILS_KWARG)
                .filter(|_| dialect.returns_reasoning_details)
            {
                set("reasoning_details", details.clone());
            }
            if !calls.is_empty() {
                set("tool_calls", Value::Array(calls));
            }
        }
        MessageKind::Tool { tool_call_id, .. } => {
            set("role", json!("tool"));
            set("tool_call_id", json!(short_id(tool_call_id, MAX_ID_CHARS)));
            set("content", json!(tool_text(&message.content, dialect)));
            return Some(Value::Object(object));
        }
    }
    if let Some(name) = sent_name(message, dialect) {
        set("name", json!(name));
    }
    Some(Value::Object(object))
}

fn call(call: &ToolCall) -> Value {
    function_call(
        &call.id,
        &call.name,
        Value::Object(call.args.clone()).to_string(),
    )
}

/// Converts a call with invalid arguments to a valid one, because strict servers parse the
/// arguments of earlier calls.
fn invalid_call(call: &InvalidToolCall) -> Value {
    let arguments =
        json!({"unreadable_arguments": call.args.as_deref().unwrap_or_default()}).to_string();
    function_call(
        call.id.as_deref().unwrap_or_default(),
        call.name.as_deref().unwrap_or_default(),
        arguments,
    )
}

fn function_call(id: &str, name: &str, arguments: String) -> Value {
    json!({"id": short_id(id, MAX_ID_CHARS), "type": "function", "function": {"name": tool_name(name), "arguments": arguments}})
}

/// Adds the extra fields that were received with the call `id`.
fn with_extras(mut call: Value, id: &str, extras: Option<&Value>) -> Value {
    if let (Some(call), Some(Value::Object(extras))) = (
        call.as_object_mut(),
        extras.and_then(|extras| extras.get(id)),
    ) {
        call.extend(extras.clone());
    }
    call
}

fn tool(tool: &ToolSchema) -> Value {
    json!({"type": "function", "function": {"name": tool.name, "description": tool.description, "parameters": tool.parameters}})
}

/// Returns the text of a tool result. On this wire results are text.
fn tool_text(content: &Content, dialect: Dialect) -> String {
    let text = content.text();
    let images = match images_of(content).count() {
        0 if text.is_empty() && !content.is_empty() => "(the result holds no text)".to_owned(),
        0 => return text,
        _ if dialect.accepts_images => "(images follow)".to_owned(),
        count => format!("({count} images, which you cannot see)"),
    };
    if text.is_empty() {
        images
    } else {
        format!("{text}\n{images}")
    }
}

fn images_of(content: &Content) -> impl Iterator<Item = Value> {
    blocks(content).into_iter().filter_map(|block| match block {
        Block::Image(image) => Some(image_url(&image)),
        _ => None,
    })
}

/// Moves the images into a user message.
fn images_as_user_message(images: &mut Vec<Value>) -> Option<JsonPart> {
    if images.is_empty() {
        return None;
    }
    let label = json!({"type": "text", "text": "(images of the results)"});
    let content: Value = std::iter::once(label).chain(images.drain(..)).collect();
    Some(json!({"role": "user", "content": content}).into())
}

/// Renames Ollama's own parameters to those of chat completions.
fn rename_ollama_settings(settings: &mut Settings, body: &mut RequestBody) {
    if let Some(limit) = settings.take(&["max_tokens", "num_predict"]) {
        body.insert("max_tokens", limit);
    }
    let effort = match settings.take(&["reasoning"]) {
        Some(Value::Bool(false)) => Some(json!("none")),
        Some(level @ Value::String(_)) => Some(level),
        _ => None,
    };
    body.extend(effort.map(|effort| ("reasoning_effort".to_owned(), effort)));
}

#[cfg(test)]
#[path = "wire_tests.rs"]
mod tests;
