//! The document of both dialects: the paths of the root, and DeerFlow's under each of their prefixes.

use serde_json::{Map, Value, json};

use crate::extract::ID_PATTERN;

/// A prefix of DeerFlow's dialect, the beginning of its operation ids, and the end of its groups' names.
const PREFIXES: [(&str, &str, &str); 2] = [
    ("/api", "deerflow", " (DeerFlow)"),
    ("/api/langgraph", "alias", " (DeerFlow, /api/langgraph)"),
];

/// Ends of the names of groups, with what is the same in all groups of that end.
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
            // A router writes the rest of a path as `{*name}`, a document has no such mark.
            all.insert(
                format!("{}{}", prefix.0, path.replace("{*", "{")),
                Value::Object(operations.collect()),
            );
        }
    }
    all
}

/// The operation as DeerFlow's dialect has it.
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
            answers(responses);
        }
        if let Some(refused) = responses.get_mut("422") {
            refused["content"] = json!({ "application/json": { "schema": { "$ref": "#/components/schemas/DeerFlowError" } } });
        }
    }
    operation
}

/// Ids are no UUIDs in DeerFlow's dialect, and limits have other defaults.
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

/// Successes in JSON differ from the platform's in fields, and some that are empty there have a body.
fn answers(responses: &mut Map<String, Value>) {
    let json = json!({ "application/json": { "schema": { "$ref": "#/components/schemas/DeerFlowAnswer" } } });
    let is_empty = responses
        .get("204")
        .is_some_and(|answer| answer.get("content").is_none());
    if is_empty && !responses.contains_key("200") {
        responses.insert(
            "200".to_owned(),
            json!({ "description": "Done.", "content": json }),
        );
    }
    for (_, answer) in responses
        .iter_mut()
        .filter(|(status, _)| status.starts_with('2'))
    {
        if answer.pointer("/content/application~1json").is_some() {
            answer["content"]["application/json"] = json["application/json"].clone();
        }
    }
}
