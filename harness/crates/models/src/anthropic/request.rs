//! Builds the JSON request of a message. Pure: depends only on the model request and the effective
//! settings.

use serde_json::{Map, Value, json};

use super::messages::{is_thought, turns};
use crate::http::{ModelOrigin, Settings, system_text};
use crate::{ModelRequest, ToolSchema};

/// Default maximum number of tokens of an answer. The API requires a value.
const DEFAULT_MAX_TOKENS: u64 = 8192;
/// Minimum thinking budget that the API accepts.
const MIN_THINKING_TOKENS: u64 = 1024;
/// Maximum number of cache breakpoints that the API accepts.
const MAX_BREAKPOINTS: usize = 4;

/// Prompt caching, which makes the next call of a conversation cheaper.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Caching {
    /// Number of last turns that get a breakpoint.
    pub(super) messages: usize,
}

/// Builds the request body.
pub(super) fn body(
    origin: &ModelOrigin,
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
        ("model".to_owned(), json!(origin.model())),
        ("max_tokens".to_owned(), json!(limit)),
    ]);
    if let Some(system) = system_text(request) {
        body.insert(
            "system".to_owned(),
            json!([{"type": "text", "text": system}]),
        );
    }
    body.insert("messages".to_owned(), Value::Array(turns(request, origin)));
    if !request.tools.is_empty() {
        body.insert("tools".to_owned(), request.tools.iter().map(tool).collect());
    }
    body.insert("stream".to_owned(), json!(true));
    add_thinking(&mut settings, &mut body, limit);
    body.extend(settings.take(&["stop_sequences", "stop"]).map(|stop| {
        let stop = if stop.is_string() {
            json!([stop])
        } else {
            stop
        };
        ("stop_sequences".to_owned(), stop)
    }));
    settings.merge_into(&mut body);
    let mut body = Value::Object(body);
    if let Some(caching) = caching {
        set_breakpoints(&mut body, caching);
    }
    body
}

/// Adds the thinking setting, with a budget if it needs one and none is set, and the effort.
fn add_thinking(settings: &mut Settings, body: &mut Map<String, Value>, limit: u64) {
    let mut thinking = settings.take(&["thinking"]);
    let is = |thinking: &Option<Value>, word: &str| {
        thinking
            .as_ref()
            .is_some_and(|thinking| thinking["type"] == word)
    };
    if is(&thinking, "enabled")
        && let Some(Value::Object(switch)) = &mut thinking
    {
        // Default: four fifths for thinking, one fifth for the answer.
        let configured = switch.get("budget_tokens").and_then(Value::as_u64);
        let budget = configured.unwrap_or(limit / 5 * 4).max(MIN_THINKING_TOKENS);
        switch.insert("budget_tokens".to_owned(), json!(budget));
        if budget >= limit {
            body.insert("max_tokens".to_owned(), json!(budget.saturating_add(limit)));
        }
    }
    if is(&thinking, "enabled") || is(&thinking, "adaptive") {
        // While thinking is on, the API accepts only its default temperature.
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

/// Marks the end of the content that stays the same between calls: the system text, the last tool,
/// and the last turns.
fn set_breakpoints(body: &mut Value, caching: Caching) {
    let mut remaining = MAX_BREAKPOINTS;
    for key in ["system", "tools"] {
        remaining -= usize::from(
            body.get_mut(key)
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
    for turn in turns.take(caching.messages.min(remaining)) {
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
