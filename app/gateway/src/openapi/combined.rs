//! The document of both dialects: the paths of the root, and DeerFlow's paths under each of its
//! prefixes.

use serde_json::{Map, Value, json};

use crate::extract::ID_PATTERN;

/// Prefix of DeerFlow's dialect, prefix of its operation ids, and suffix of its group names.
const PREFIXES: [(&str, &str, &str); 2] = [
    ("/api", "deerflow", " (DeerFlow)"),
    ("/api/langgraph", "alias", " (DeerFlow, /api/langgraph)"),
];

/// Suffixes of the group names.
pub(super) fn group_ends() -> impl Iterator<Item = &'static str> {
    PREFIXES.iter().map(|(_, _, end)| *end)
}

/// Paths of the root and of DeerFlow's dialect, the latter under each prefix.
pub(super) fn paths(
    platform: &Map<String, Value>,
    deerflow: &Map<String, Value>,
) -> Map<String, Value> {
    let mut all = platform.clone();
    for prefix in &PREFIXES {
        for (path, item) in deerflow {
            let Some(operations) = item.as_object() else {
                continue;
            };
            let shared = platform.get(path);
            let operations = operations.iter().map(|(method, operation)| {
                let is_shared = shared.is_some_and(|item| item.get(method).is_some());
                (
                    method.clone(),
                    in_deerflow(operation.clone(), prefix, is_shared),
                )
            });
            // The router writes a trailing path parameter as `{*name}`; OpenAPI has no such form.
            all.insert(
                format!("{}{}", prefix.0, path.replace("{*", "{")),
                Value::Object(operations.collect()),
            );
        }
    }
    all
}

/// Returns the operation in DeerFlow's dialect.
fn in_deerflow(mut operation: Value, (_, id, end): &(&str, &str, &str), is_shared: bool) -> Value {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    operation["operationId"] = format!("{id}_{}", text(&operation["operationId"])).into();
    if let Some(tags) = operation.get_mut("tags").and_then(Value::as_array_mut) {
        tags.iter_mut()
            .for_each(|tag| *tag = format!("{}{end}", text(tag)).into());
    }
    if let Some(parameters) = operation
        .get_mut("parameters")
        .and_then(Value::as_array_mut)
    {
        parameters.iter_mut().for_each(parameter);
    }
    if let Some(responses) = operation
        .get_mut("responses")
        .and_then(Value::as_object_mut)
    {
        if is_shared {
            returns(responses);
        }
        if let Some(refused) = responses.get_mut("422") {
            refused["content"] = json!({ "application/json": { "schema": { "$ref": "#/components/schemas/DeerFlowError" } } });
        }
    }
    operation
}

/// Adapts a parameter to DeerFlow's dialect, in which ids are not UUIDs and limits have other
/// defaults.
fn parameter(parameter: &mut Value) {
    let name = parameter["name"]
        .as_str()
        .unwrap_or_default()
        .trim_start_matches('*')
        .to_owned();
    let is_thread = name == "thread_id";
    parameter["name"] = name.into();
    match parameter["in"].as_str() {
        Some("path") if is_thread => {
            parameter["schema"] = json!({ "type": "string", "pattern": ID_PATTERN })
        }
        Some("path") => parameter["schema"] = json!({ "type": "string", "minLength": 1 }),
        Some("query") => {
            if let Some(schema) = parameter["schema"].as_object_mut() {
                schema.shift_remove("default");
            }
        }
        _ => {}
    }
}

/// Adapts responses to DeerFlow's dialect: their JSON has other fields than the platform's, and
/// some that are empty on the platform have a body.
fn returns(responses: &mut Map<String, Value>) {
    let json = json!({ "application/json": { "schema": { "$ref": "#/components/schemas/DeerFlowAnswer" } } });
    let is_empty = responses
        .get("204")
        .is_some_and(|response| response.get("content").is_none());
    if is_empty && !responses.contains_key("200") {
        responses.insert(
            "200".to_owned(),
            json!({ "description": "The operation succeeded.", "content": json }),
        );
    }
    for (_, response) in responses
        .iter_mut()
        .filter(|(status, _)| status.starts_with('2'))
    {
        if response.pointer("/content/application~1json").is_some() {
            response["content"]["application/json"] = json["application/json"].clone();
        }
    }
}
