//! Builds the JSON request of a chat completion. Pure: depends only on the model request and the
//! effective settings.

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::assistant_message::AssistantMessage;
use super::dialect::Dialect;
use super::tool_message::{ToolMessage, images_of};
use super::user_message::UserMessage;
use crate::http::{JsonPart, RequestBody, Settings, ToolTexts, system_text};
use crate::{ModelRequest, ToolSchema};
use deerflow_core::json_size::raw_value;
use deerflow_core::messages::{Message, MessageKind};

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
                if dialect.accepts_images {
                    images.extend(images_of(&message.content));
                }
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
    // First, because a read of `message.kind` would create and cache the framed text.
    if message.is_human() {
        let framed = message.framed_text();
        return raw(&UserMessage::new(message.without_frame(), framed, dialect));
    }
    match &message.kind {
        MessageKind::System | MessageKind::Remove | MessageKind::Human => None,
        MessageKind::Ai {
            tool_calls,
            invalid_tool_calls,
            ..
        } => raw(&AssistantMessage::new(
            message,
            tool_calls,
            invalid_tool_calls,
            dialect,
        )),
        MessageKind::Tool { tool_call_id, .. } => {
            raw(&ToolMessage::new(&message.content, tool_call_id, dialect))
        }
    }
}

/// Serializes a message, which is serialized without errors because it consists of JSON values.
fn raw(message: &impl Serialize) -> Option<Box<RawValue>> {
    raw_value(message).ok()
}

fn tool(tool: &ToolSchema) -> Value {
    json!({"type": "function", "function": {"name": tool.name, "description": tool.description, "parameters": tool.parameters}})
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
