//! Builds the JSON request of a response. Pure: depends only on the model request and the effective
//! settings.

use serde_json::{Map, Value, json};

use super::flavor::Flavor;
use super::input::items;
use crate::http::{ModelOrigin, Settings, system_text};
use crate::{ModelRequest, ToolSchema};

/// Settings of chat completions that this API does not have.
const OF_CHAT_COMPLETIONS: &[&str] = &[
    "stop",
    "seed",
    "n",
    "presence_penalty",
    "frequency_penalty",
    "logprobs",
    "stream_options",
];

/// Reasoning efforts that Codex accepts.
const CODEX_EFFORTS: &[&str] = &["low", "medium", "high", "xhigh"];

/// Builds the request body. `reasons` is `true` if the model supports reasoning.
pub(super) fn body(
    origin: &ModelOrigin,
    settings: &Map<String, Value>,
    request: &ModelRequest,
    flavor: Flavor,
    reasons: bool,
) -> Value {
    let mut settings = Settings::of(settings);
    let mut body = Map::from_iter([("model".to_owned(), json!(origin.model()))]);
    let system = system_text(request);
    match flavor {
        // Codex requires instructions, even empty ones.
        Flavor::Codex => {
            body.extend([("instructions".to_owned(), json!(system.unwrap_or_default()))])
        }
        Flavor::OpenAi => body.extend(system.map(|text| ("instructions".to_owned(), json!(text)))),
    }
    let reasoning = reasoning(&mut settings, request, flavor);
    let reasons = reasons || reasoning.is_some();
    // Models without reasoning reject the reasoning of earlier answers.
    body.insert(
        "input".to_owned(),
        Value::Array(items(request, reasons.then_some(origin))),
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
    settings.merge_into(&mut body);
    Value::Object(body)
}

/// Returns the reasoning setting: `reasoning` of the entry, completed by the effort.
fn reasoning(settings: &mut Settings, request: &ModelRequest, flavor: Flavor) -> Option<Value> {
    // The thinking switch of other providers; here the effort has this role.
    settings.take(&["thinking"]);
    let effort = settings.take(&["reasoning_effort"]);
    let mut reasoning = match settings.take(&["reasoning"]) {
        Some(Value::Object(configured)) => configured,
        _ => Map::new(),
    };
    if flavor == Flavor::Codex {
        let requested = effort
            .as_ref()
            .and_then(Value::as_str)
            .filter(|effort| CODEX_EFFORTS.contains(effort));
        let effort = if request.thinking {
            requested.unwrap_or("medium")
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
