//! Builds the JSON request of an answer. Pure: depends only on the model request and the effective
//! settings.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use crate::http::{Block, Image, Settings, blocks, system_text};
use crate::{ModelRequest, ToolSchema};
use deerflow_core::messages::{Content, Message, MessageKind, kwargs};

/// Fields of `options` and the names under which entries set them.
const OPTIONS: &[(&str, &[&str])] = &[
    ("num_predict", &["num_predict", "max_tokens"]),
    ("num_ctx", &["num_ctx"]),
    ("temperature", &["temperature"]),
    ("top_p", &["top_p"]),
    ("top_k", &["top_k"]),
    ("min_p", &["min_p"]),
    ("seed", &["seed"]),
    ("stop", &["stop"]),
    ("repeat_penalty", &["repeat_penalty"]),
    ("repeat_last_n", &["repeat_last_n"]),
    ("tfs_z", &["tfs_z"]),
    ("mirostat", &["mirostat"]),
    ("mirostat_eta", &["mirostat_eta"]),
    ("mirostat_tau", &["mirostat_tau"]),
    ("num_gpu", &["num_gpu"]),
    ("num_thread", &["num_thread"]),
];

/// Builds the request body. `thinks` is `true` if the model supports thinking: other models reject
/// the field.
pub(super) fn body(
    model: &str,
    settings: &Map<String, Value>,
    request: &ModelRequest,
    thinks: bool,
) -> Value {
    let mut settings = Settings::of(settings);
    let mut body = Map::from_iter([
        ("model".to_owned(), json!(model)),
        ("messages".to_owned(), Value::Array(messages(request))),
    ]);
    if !request.tools.is_empty() {
        body.insert("tools".to_owned(), request.tools.iter().map(tool).collect());
    }
    body.insert("stream".to_owned(), json!(true));
    let think = thinking_setting(&mut settings, request, thinks);
    body.extend(think.map(|think| ("think".to_owned(), think)));
    let mut options = Map::new();
    for (name, keys) in OPTIONS {
        options.extend(settings.take(keys).map(|value| ((*name).to_owned(), value)));
    }
    if let Some(Value::Object(configured)) = settings.take(&["options"]) {
        options.extend(configured);
    }
    if !options.is_empty() {
        body.insert("options".to_owned(), Value::Object(options));
    }
    settings.merge_into(&mut body);
    Value::Object(body)
}

/// Returns the thinking setting: the run's if the model supports thinking, else the entry's. An
/// effort sets the level.
fn thinking_setting(
    settings: &mut Settings,
    request: &ModelRequest,
    thinks: bool,
) -> Option<Value> {
    let switch = settings
        .take(&["thinking"])
        .and_then(|switch| Some(json!(switch.get("type")? != "disabled")));
    let configured = settings.take(&["reasoning", "think"]);
    let effort = settings
        .take(&["reasoning_effort"])
        .filter(|effort| matches!(effort.as_str(), Some("low" | "medium" | "high")));
    match (thinks, request.thinking) {
        (true, true) => effort.or(configured).or(switch).or(Some(json!(true))),
        (true, false) => Some(json!(false)),
        (false, _) => configured.or(switch),
    }
}

fn messages(request: &ModelRequest) -> Vec<Value> {
    let mut list: Vec<Value> = system_text(request)
        .map(|text| json!({"role": "system", "content": text}))
        .into_iter()
        .collect();
    // Results must contain the tool name, which not every tool message has.
    let mut names: HashMap<&str, &str> = HashMap::new();
    for message in &request.messages {
        match message.kind() {
            MessageKind::System | MessageKind::Remove => {}
            MessageKind::Human => list.push(with_images("user", &message.sent_content())),
            MessageKind::Ai { tool_calls, .. } => {
                names.extend(
                    tool_calls
                        .iter()
                        .map(|call| (call.id.as_str(), call.name.as_str())),
                );
                list.push(answer(message));
            }
            MessageKind::Tool { tool_call_id, .. } => {
                let mut result = with_images("tool", &message.content);
                let name = names
                    .get(tool_call_id.as_str())
                    .copied()
                    .or(message.name.as_deref());
                result["tool_name"] = json!(name.unwrap_or("unknown"));
                list.push(result);
            }
        }
    }
    list
}

/// Returns a message with text and images. Leaves out images by URL, because Ollama does not fetch
/// them.
fn with_images(role: &str, content: &Content) -> Value {
    let images = blocks(content).into_iter().filter_map(|block| match block {
        Block::Image(Image::Bytes { base64, .. }) => Some(json!(base64)),
        _ => None,
    });
    let images: Vec<Value> = images.collect();
    let mut message = json!({"role": role, "content": content.text()});
    if !images.is_empty() {
        message["images"] = Value::Array(images);
    }
    message
}

fn answer(message: &Message) -> Value {
    let mut body = json!({"role": "assistant", "content": message.content.text()});
    if let Some(thought) = message.additional_kwargs.get(kwargs::REASONING_CONTENT) {
        body["thinking"] = thought.clone();
    }
    let MessageKind::Ai {
        tool_calls,
        invalid_tool_calls,
        ..
    } = &message.kind
    else {
        return body;
    };
    let readable = tool_calls
        .iter()
        .map(|call| json!({"function": {"name": call.name, "arguments": call.args}}));
    let unreadable =
        invalid_tool_calls.iter().map(|call| json!({"function": {"name": call.name, "arguments": {"unreadable_arguments": call.args}}}));
    let calls: Vec<Value> = readable.chain(unreadable).collect();
    if !calls.is_empty() {
        body["tool_calls"] = Value::Array(calls);
    }
    body
}

fn tool(tool: &ToolSchema) -> Value {
    json!({"type": "function", "function": {"name": tool.name, "description": tool.description, "parameters": tool.parameters}})
}
