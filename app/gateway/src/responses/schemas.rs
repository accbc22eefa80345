//! JSON schemas of a thread's values and of a run's context.

use harness::state::{Channels, Reducer};
use serde_json::{Map, Value, json};

/// Returns the schema of values: messages and these properties.
pub fn state_schema(title: &str, properties: Map<String, Value>) -> Value {
    let kinds = [
        "HumanMessage",
        "AIMessage",
        "SystemMessage",
        "ToolMessage",
        "RemoveMessage",
    ];
    let any: Vec<Value> = kinds
        .iter()
        .map(|kind| json!({ "$ref": format!("#/$defs/{kind}") }))
        .collect();
    let messages = json!({ "title": "Messages", "type": "array", "items": { "oneOf": any } });
    let mut all = Map::from_iter([("messages".to_owned(), messages)]);
    all.extend(properties);
    json!({ "$defs": definitions(), "title": title, "type": "object", "properties": all })
}

/// Returns the schemas of channels by name.
pub fn channel_schemas(channels: &Channels) -> Map<String, Value> {
    let all = channels.iter();
    all.map(|(name, reducer)| (name.to_owned(), channel(name, reducer)))
        .collect()
}

/// Returns the schema of a run's context.
pub fn context_schema() -> Value {
    json!({
        "title": "Context",
        "type": "object",
        "properties": {
            "model_name": { "title": "Model Name", "type": "string", "description": "The name of a configured model." },
            "thinking_enabled": { "title": "Thinking Enabled", "type": "boolean", "default": true },
            "reasoning_effort": { "title": "Reasoning Effort", "type": "string", "enum": ["minimal", "low", "medium", "high"] },
        },
    })
}

fn channel(name: &str, reducer: Reducer) -> Value {
    let shape = match (name, reducer) {
        ("title" | "summary_text" | "created_agent_name", _) => json!({ "type": "string" }),
        ("uploaded_files" | "todos" | "background_tasks", _) => {
            json!({ "type": "array", "items": { "type": "object" } })
        }
        ("artifacts", _) => json!({ "type": "array", "items": { "type": "string" } }),
        (_, Reducer::Union) => json!({ "type": "array" }),
        (_, Reducer::LastWrite | Reducer::ReplaceUnlessNull)
            if !Channels::lead().contains(name) =>
        {
            json!({})
        }
        _ => json!({ "type": "object" }),
    };
    let title: Vec<String> = name.split('_').map(capitalized).collect();
    json!({ "title": title.join(" "), "anyOf": [shape, { "type": "null" }], "default": null })
}

fn capitalized(word: &str) -> String {
    let mut chars = word.chars();
    chars
        .next()
        .map(|first| first.to_ascii_uppercase().to_string() + chars.as_str())
        .unwrap_or_default()
}

fn object(title: &str, required: &[&str], properties: Value) -> Value {
    json!({ "title": title, "type": "object", "required": required, "properties": properties })
}

fn definitions() -> Value {
    let (text, number) = (json!({ "type": "string" }), json!({ "type": "integer" }));
    let call = object(
        "ToolCall",
        &["name", "args", "id"],
        json!({
            "name": text,
            "args": { "type": "object" },
            "id": { "anyOf": [text, { "type": "null" }] },
            "type": { "const": "tool_call", "type": "string" },
        }),
    );
    let counts = ["input_tokens", "output_tokens", "total_tokens"];
    let usage = object(
        "UsageMetadata",
        &counts,
        counts
            .iter()
            .map(|count| (*count, number.clone()))
            .collect(),
    );
    let remove = object(
        "RemoveMessage",
        &["type", "id"],
        json!({ "type": { "const": "remove", "type": "string" }, "id": text }),
    );
    let calls = json!({ "type": "array", "items": { "$ref": "#/$defs/ToolCall" } });
    let usage_or_null = json!({ "anyOf": [{ "$ref": "#/$defs/UsageMetadata" }, { "type": "null" }], "default": null });
    json!({
        "HumanMessage": message("HumanMessage", "human", &[], json!({})),
        "SystemMessage": message("SystemMessage", "system", &[], json!({})),
        "AIMessage": message("AIMessage", "ai", &[], json!({ "tool_calls": calls, "usage_metadata": usage_or_null })),
        "ToolMessage": message("ToolMessage", "tool", &["tool_call_id"], json!({
            "tool_call_id": { "type": "string" },
            "artifact": {},
            "status": { "type": "string", "enum": ["success", "error"], "default": "success" },
        })),
        "RemoveMessage": remove,
        "ToolCall": call,
        "UsageMetadata": usage,
    })
}

/// Returns the schema of one message type: the common fields, and `own`.
fn message(title: &str, kind: &str, required: &[&str], own: Value) -> Value {
    let text_or_none =
        json!({ "anyOf": [{ "type": "string" }, { "type": "null" }], "default": null });
    let mut properties = json!({
        "type": { "const": kind, "default": kind, "type": "string" },
        "content": { "anyOf": [
            { "type": "string" },
            { "type": "array", "items": { "anyOf": [{ "type": "string" }, { "type": "object", "additionalProperties": true }] } },
        ] },
        "id": text_or_none,
        "name": text_or_none,
        "additional_kwargs": { "type": "object", "additionalProperties": true },
        "response_metadata": { "type": "object", "additionalProperties": true },
    });
    if let (Value::Object(all), Value::Object(own)) = (&mut properties, own) {
        all.extend(own);
    }
    let required: Vec<&str> = ["content"].iter().chain(required).copied().collect();
    json!({ "title": title, "type": "object", "required": required, "properties": properties, "additionalProperties": true })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schema_covers_every_channel_and_reference() {
        let channels = Channels::lead()
            .with("score", Reducer::LastWrite)
            .and_then(|channels| channels.with("ports", Reducer::MergeKeys))
            .expect("valid channels");
        let schema = state_schema("State", channel_schemas(&channels));
        assert_eq!(
            schema["properties"]["ports"]["anyOf"][0],
            json!({ "type": "object" })
        );
        for name in channels.iter().map(|(name, _)| name).chain(["messages"]) {
            assert!(schema["properties"][name]["title"].is_string(), "{name}");
        }
        let text = schema.to_string();
        for reference in text.split("#/$defs/").skip(1) {
            let name = reference.split('"').next().unwrap();
            assert!(schema["$defs"][name].is_object(), "{name}");
        }
    }
}
