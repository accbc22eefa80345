//! Builds the JSON request of an answer. Pure: depends only on the model request and the effective
//! settings.

use serde_json::{Map, Value, json};

use super::contents::contents;
use super::generation::is_third_generation;
use crate::http::{ModelOrigin, Settings, system_text};
use crate::{ModelRequest, ToolSchema};

/// Fields of `generationConfig` and the names under which entries set them, the provider's own name
/// last.
const GENERATION: &[(&str, &[&str])] = &[
    ("temperature", &["temperature"]),
    ("topP", &["top_p", "topP"]),
    ("topK", &["top_k", "topK"]),
    (
        "maxOutputTokens",
        &["max_tokens", "max_output_tokens", "maxOutputTokens"],
    ),
    (
        "stopSequences",
        &["stop", "stop_sequences", "stopSequences"],
    ),
    ("candidateCount", &["n", "candidateCount"]),
    ("seed", &["seed"]),
    ("presencePenalty", &["presence_penalty", "presencePenalty"]),
    (
        "frequencyPenalty",
        &["frequency_penalty", "frequencyPenalty"],
    ),
    (
        "responseMimeType",
        &["response_mime_type", "responseMimeType"],
    ),
    (
        "responseModalities",
        &["response_modalities", "responseModalities"],
    ),
    ("mediaResolution", &["media_resolution", "mediaResolution"]),
];

/// Builds the request body. `thinks` is `true` if the model supports thinking.
pub(super) fn body(
    origin: &ModelOrigin,
    settings: &Map<String, Value>,
    request: &ModelRequest,
    thinks: bool,
) -> Value {
    let mut settings = Settings::of(settings);
    let mut body = Map::new();
    if let Some(text) = system_text(request) {
        body.insert(
            "systemInstruction".to_owned(),
            json!({"parts": [{"text": text}]}),
        );
    }
    body.insert(
        "contents".to_owned(),
        Value::Array(contents(request, origin)),
    );
    if !request.tools.is_empty() {
        let functions: Vec<Value> = request.tools.iter().map(function).collect();
        body.insert(
            "tools".to_owned(),
            json!([{"functionDeclarations": functions}]),
        );
    }
    let mut generation = Map::new();
    for (name, keys) in GENERATION {
        generation.extend(settings.take(keys).map(|value| ((*name).to_owned(), value)));
    }
    if let Some(stop) = generation
        .get_mut("stopSequences")
        .filter(|stop| stop.is_string())
    {
        *stop = json!([stop]);
    }
    let thinking = thinking(&mut settings, request.thinking && thinks, origin.model());
    generation.extend(thinking.map(|thinking| ("thinkingConfig".to_owned(), thinking)));
    if let Some(Value::Object(more)) = settings.take(&["generation_config", "generationConfig"]) {
        generation.extend(more);
    }
    if !generation.is_empty() {
        body.insert("generationConfig".to_owned(), Value::Object(generation));
    }
    let safety = settings.take(&["safety_settings", "safetySettings"]);
    body.extend(safety.map(|safety| ("safetySettings".to_owned(), safety_list(safety))));
    settings.merge_into(&mut body);
    Value::Object(body)
}

/// Returns the thinking configuration. Accepts the terms of this API, of its client library, and of
/// other providers.
fn thinking(settings: &mut Settings, on: bool, model: &str) -> Option<Value> {
    let mut config = Map::new();
    let switch = settings.take(&["thinking"]);
    let switched = |word: &str| switch.as_ref().is_some_and(|switch| switch["type"] == word);
    if on || switched("enabled") {
        config.insert("includeThoughts".to_owned(), json!(true));
    }
    let mut budget = settings
        .take(&["thinking_budget"])
        .or_else(|| switch.as_ref()?.get("budget_tokens").cloned());
    if switched("disabled") {
        // Models that always think reject a budget of 0.
        budget = (!always_thinks(model)).then(|| json!(0));
    }
    config.extend(budget.map(|budget| ("thinkingBudget".to_owned(), budget)));
    config.extend(
        settings
            .take(&["include_thoughts"])
            .map(|include| ("includeThoughts".to_owned(), include)),
    );
    // The API accepts a budget or a level, not both.
    let level = settings
        .take(&["thinking_level", "reasoning_effort"])
        .filter(|level| level != "none");
    if !config.contains_key("thinkingBudget") {
        config.extend(level.map(|level| ("thinkingLevel".to_owned(), level)));
    }
    if let Some(Value::Object(configured)) = settings.take(&["thinking_config", "thinkingConfig"]) {
        config.extend(configured);
    }
    (!config.is_empty()).then_some(Value::Object(config))
}

fn always_thinks(model: &str) -> bool {
    model.starts_with("gemini-2.5-pro") || is_third_generation(model)
}

/// Converts thresholds by category to the list that the API accepts.
fn safety_list(configured: Value) -> Value {
    match configured {
        Value::Object(by_category) => by_category
            .into_iter()
            .map(|(category, threshold)| json!({"category": category, "threshold": threshold}))
            .collect(),
        list => list,
    }
}

fn function(tool: &ToolSchema) -> Value {
    json!({"name": tool.name, "description": tool.description, "parametersJsonSchema": tool.parameters})
}
