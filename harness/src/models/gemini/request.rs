//! The request of an answer as JSON: pure, from a model request and the entry's effective settings.

use serde_json::{Map, Value, json};

use super::contents::contents;
use crate::models::http::{Maker, Settings, system_text};
use crate::models::{ModelRequest, ToolSchema};

/// By which names entries give what stands in `generationConfig`, the provider's own last.
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

/// The body to post. `thinks` says whether the model can think.
pub(super) fn body(
    maker: &Maker,
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
        Value::Array(contents(request, maker)),
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
    let thinking = thinking(&mut settings, request.thinking && thinks, maker.model());
    generation.extend(thinking.map(|thinking| ("thinkingConfig".to_owned(), thinking)));
    if let Some(Value::Object(more)) = settings.take(&["generation_config", "generationConfig"]) {
        generation.extend(more);
    }
    if !generation.is_empty() {
        body.insert("generationConfig".to_owned(), Value::Object(generation));
    }
    let safety = settings.take(&["safety_settings", "safetySettings"]);
    body.extend(safety.map(|safety| ("safetySettings".to_owned(), safety_list(safety))));
    settings.lay_onto(&mut body);
    Value::Object(body)
}

/// How the model shall think, in the words of this API, of its library, or of other providers.
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
        // Models that cannot stop thinking refuse to be asked.
        budget = (!always_thinks(model)).then(|| json!(0));
    }
    config.extend(budget.map(|budget| ("thinkingBudget".to_owned(), budget)));
    config.extend(
        settings
            .take(&["include_thoughts"])
            .map(|include| ("includeThoughts".to_owned(), include)),
    );
    // The API takes a budget or a level, not both.
    let level = settings
        .take(&["thinking_level", "reasoning_effort"])
        .filter(|level| level != "none");
    if !config.contains_key("thinkingBudget") {
        config.extend(level.map(|level| ("thinkingLevel".to_owned(), level)));
    }
    if let Some(Value::Object(given)) = settings.take(&["thinking_config", "thinkingConfig"]) {
        config.extend(given);
    }
    (!config.is_empty()).then_some(Value::Object(config))
}

fn always_thinks(model: &str) -> bool {
    model.starts_with("gemini-2.5-pro") || is_third(model)
}

/// Whether the model is of the third generation or a later one.
pub(super) fn is_third(model: &str) -> bool {
    let digits = |rest: &str| {
        rest.split(|letter: char| !letter.is_ascii_digit())
            .next()
            .and_then(|digits| digits.parse::<u32>().ok())
    };
    model
        .strip_prefix("gemini-")
        .and_then(digits)
        .is_some_and(|generation| generation >= 3)
}

/// Thresholds by category become the list that the API takes.
fn safety_list(given: Value) -> Value {
    match given {
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
