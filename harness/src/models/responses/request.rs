//! The request of a response as JSON: pure, from a model request and the entry's effective settings.

use serde_json::{Map, Value, json};

use super::Flavor;
use super::input::items;
use crate::models::http::{Maker, Settings, system_text};
use crate::models::{ModelRequest, ToolSchema};

/// Settings of chat completions that this API has no place for.
const OF_CHAT_COMPLETIONS: &[&str] = &[
    "stop",
    "seed",
    "n",
    "presence_penalty",
    "frequency_penalty",
    "logprobs",
    "stream_options",
];

/// The efforts that Codex takes.
const CODEX_EFFORTS: &[&str] = &["low", "medium", "high", "xhigh"];

/// The body to post. `reasons` says whether the model can reason.
pub(super) fn body(
    maker: &Maker,
    settings: &Map<String, Value>,
    request: &ModelRequest,
    flavor: Flavor,
    reasons: bool,
) -> Value {
    let mut settings = Settings::of(settings);
    let mut body = Map::from_iter([("model".to_owned(), json!(maker.model()))]);
    let system = system_text(request);
    match flavor {
        // It insists on instructions, even on none.
        Flavor::Codex => {
            body.extend([("instructions".to_owned(), json!(system.unwrap_or_default()))])
        }
        Flavor::OpenAi => body.extend(system.map(|text| ("instructions".to_owned(), json!(text)))),
    }
    let reasoning = reasoning(&mut settings, request, flavor);
    let reasons = reasons || reasoning.is_some();
    // Models that do not reason refuse the reasoning of earlier answers.
    body.insert(
        "input".to_owned(),
        Value::Array(items(request, reasons.then_some(maker))),
    );
    if !request.tools.is_empty() {
        body.insert("tools".to_owned(), request.tools.iter().map(tool).collect());
    }
    body.insert("stream".to_owned(), json!(true));
    body.insert("store".to_owned(), json!(false));
    let limit = settings.take(&["max_output_tokens", "max_completion_tokens", "max_tokens"]);
    if flavor == Flavor::OpenAi {
        body.extend(limit.map(|limit| ("max_output_tokens".to_owned(), limit)));
    }
    for key in OF_CHAT_COMPLETIONS {
        settings.take(&[key]);
    }
    if let Some(verbosity) = settings.take(&["verbosity"]) {
        body.insert("text".to_owned(), json!({"verbosity": verbosity}));
    }
    settings.take(&["account_id"]);
    if flavor == Flavor::Codex {
        settings.take(&["temperature", "top_p"]);
    }
    if reasons {
        body.insert("include".to_owned(), json!(["reasoning.encrypted_content"]));
    }
    body.extend(reasoning.map(|reasoning| ("reasoning".to_owned(), reasoning)));
    settings.lay_onto(&mut body);
    Value::Object(body)
}

/// How much to reason: what the entry says under `reasoning`, completed by the effort.
fn reasoning(settings: &mut Settings, request: &ModelRequest, flavor: Flavor) -> Option<Value> {
    // A switch in other providers' words, which the effort says here.
    settings.take(&["thinking"]);
    let effort = settings.take(&["reasoning_effort"]);
    let mut reasoning = match settings.take(&["reasoning"]) {
        Some(Value::Object(given)) => given,
        _ => Map::new(),
    };
    if flavor == Flavor::Codex {
        let asked = effort
            .as_ref()
            .and_then(Value::as_str)
            .filter(|effort| CODEX_EFFORTS.contains(effort));
        let effort = if request.thinking {
            asked.unwrap_or("medium")
        } else {
            "none"
        };
        reasoning.entry("effort").or_insert_with(|| json!(effort));
        if request.thinking {
            reasoning
                .entry("summary")
                .or_insert_with(|| json!("detailed"));
        }
    } else if let Some(effort) = effort {
        reasoning.entry("effort").or_insert(effort);
    }
    (!reasoning.is_empty()).then_some(Value::Object(reasoning))
}

fn tool(tool: &ToolSchema) -> Value {
    json!({"type": "function", "name": tool.name, "description": tool.description, "parameters": tool.parameters, "strict": false})
}
