//! The request of a message as JSON: pure, from a model request and the entry's effective settings.

use serde_json::{Map, Value, json};

use super::messages::{is_thought, turns};
use crate::models::http::{Maker, Settings, system_text};
use crate::models::{ModelRequest, ToolSchema};

/// How long an answer may be when the entry does not say; the API insists on a number.
const DEFAULT_MAX_TOKENS: u64 = 8192;
/// The least thinking that the API takes.
const LEAST_THINKING: u64 = 1024;
/// More breakpoints than this are refused.
const MOST_BREAKPOINTS: usize = 4;

/// Where the API shall remember what it has read, so that the next call of a conversation costs less.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Caching {
    /// At how many of the last turns.
    pub(super) messages: usize,
}

/// The body to post.
pub(super) fn body(
    maker: &Maker,
    settings: &Map<String, Value>,
    request: &ModelRequest,
    caching: Option<Caching>,
) -> Value {
    let mut settings = Settings::of(settings);
    let limit = settings
        .take(&["max_tokens", "max_tokens_to_sample"])
        .and_then(|limit| limit.as_u64())
        .unwrap_or(DEFAULT_MAX_TOKENS);
    let mut body = Map::from_iter([
        ("model".to_owned(), json!(maker.model())),
        ("max_tokens".to_owned(), json!(limit)),
    ]);
    if let Some(system) = system_text(request) {
        body.insert(
            "system".to_owned(),
            json!([{"type": "text", "text": system}]),
        );
    }
    body.insert("messages".to_owned(), Value::Array(turns(request, maker)));
    if !request.tools.is_empty() {
        body.insert("tools".to_owned(), request.tools.iter().map(tool).collect());
    }
    body.insert("stream".to_owned(), json!(true));
    think(&mut settings, &mut body, limit);
    body.extend(settings.take(&["stop_sequences", "stop"]).map(|stop| {
        let stop = if stop.is_string() {
            json!([stop])
        } else {
            stop
        };
        ("stop_sequences".to_owned(), stop)
    }));
    settings.lay_onto(&mut body);
    let mut body = Value::Object(body);
    if let Some(caching) = caching {
        set_breakpoints(&mut body, caching);
    }
    body
}

/// The thinking switch, with a budget where it needs one and none is given, and the effort.
fn think(settings: &mut Settings, body: &mut Map<String, Value>, limit: u64) {
    let mut thinking = settings.take(&["thinking"]);
    let is = |thinking: &Option<Value>, word: &str| {
        thinking
            .as_ref()
            .is_some_and(|thinking| thinking["type"] == word)
    };
    if is(&thinking, "enabled")
        && let Some(Value::Object(switch)) = &mut thinking
    {
        // Four fifths for the thoughts, the rest for the answer, unless the entry says how much.
        let given = switch.get("budget_tokens").and_then(Value::as_u64);
        let budget = given.unwrap_or(limit / 5 * 4).max(LEAST_THINKING);
        switch.insert("budget_tokens".to_owned(), json!(budget));
        if budget >= limit {
            body.insert("max_tokens".to_owned(), json!(budget.saturating_add(limit)));
        }
    }
    if is(&thinking, "enabled") || is(&thinking, "adaptive") {
        // While it thinks, the API takes no other temperature than its own.
        settings.take(&["temperature"]);
        settings.take(&["top_k"]);
    }
    body.extend(thinking.map(|thinking| ("thinking".to_owned(), thinking)));
    let effort = settings.take(&["reasoning_effort", "effort"]);
    if let Some(effort) = effort
        .as_ref()
        .and_then(Value::as_str)
        .filter(|effort| !matches!(*effort, "none" | "minimal"))
        && settings.get("output_config").is_none()
    {
        body.insert("output_config".to_owned(), json!({"effort": effort}));
    }
}

fn tool(tool: &ToolSchema) -> Value {
    json!({"name": tool.name, "description": tool.description, "input_schema": tool.parameters})
}

/// Marks the end of what stays the same from call to call: the system text, the last tool, and the last turns.
fn set_breakpoints(body: &mut Value, caching: Caching) {
    let mut left = MOST_BREAKPOINTS;
    for place in ["system", "tools"] {
        left -= usize::from(
            body.get_mut(place)
                .and_then(Value::as_array_mut)
                .and_then(|list| list.last_mut())
                .is_some_and(mark),
        );
    }
    let turns = body
        .get_mut("messages")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
        .rev();
    for turn in turns.take(caching.messages.min(left)) {
        let blocks = turn
            .get_mut("content")
            .and_then(Value::as_array_mut)
            .into_iter()
            .flatten();
        blocks.rev().find(|block| !is_thought(block)).map(mark);
    }
}

fn mark(block: &mut Value) -> bool {
    let Some(block) = block.as_object_mut() else {
        return false;
    };
    block.insert("cache_control".to_owned(), json!({"type": "ephemeral"}));
    true
}
