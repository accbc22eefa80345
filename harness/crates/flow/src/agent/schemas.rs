//! JSON schemas of a flow's input, output and state.

use deerflow_runtime::agent::SchemaPart;
use serde_json::{Map, Value, json};

use crate::compiled::{CompiledFlow, CompiledNode};
use crate::schema::{DataType, Port};

/// Returns the schemas of the values besides `messages`, by name.
pub(super) fn properties(flow: &CompiledFlow, part: SchemaPart) -> Map<String, Value> {
    let properties = match part {
        SchemaPart::Input => json!({
            "userPrompt": {
                "title": "User Prompt", "type": "string",
                "description": "The prompt of the run; without it, the text of the last human message.",
            },
        }),
        SchemaPart::Output => json!({
            "title": { "title": "Title", "type": "string" },
            "result": { "title": "Result", "description": "The result of the run." },
            "ports": ports(flow),
            "errors": errors(),
        }),
        SchemaPart::State => json!({
            "title": { "title": "Title", "type": "string" },
            "input": {
                "title": "Input", "type": "object",
                "properties": properties(flow, SchemaPart::Input),
            },
            "ports": ports(flow),
            "outputs": by_node(flow, "Outputs", |_| json!({
                "type": "object",
                "properties": {
                    "text": { "type": "string" },
                    "structured": {},
                    "turnMode": { "type": "string", "enum": ["normal", "plan", "evaluate"] },
                    "usage": { "type": "object" },
                    "sequence": { "type": "integer" },
                },
            })),
            "loops": by_node(flow, "Loops", |_| json!({
                "type": "object",
                "properties": {
                    "stage": { "type": "string", "enum": ["plan", "execute", "evaluate"] },
                    "round": { "type": "integer" },
                    "since": { "type": "integer" },
                },
            })),
            "visits": by_node(flow, "Visits", |_| json!({ "type": "integer", "minimum": 0 })),
            "waiting": { "title": "Waiting", "type": "array", "items": { "type": "string" } },
            "sessions": { "title": "Sessions", "type": "object" },
            "result": { "title": "Result", "description": "The result of the run." },
            "errors": errors(),
        }),
    };
    match properties {
        Value::Object(properties) => properties,
        _ => Map::new(),
    }
}

fn errors() -> Value {
    json!({
        "title": "Errors", "type": "array",
        "items": {
            "type": "object",
            "properties": {
                "code": { "type": "string" },
                "message": { "type": "string" },
                "nodeId": { "type": "string" },
                "retryable": { "type": "boolean" },
            },
        },
    })
}

fn by_node(flow: &CompiledFlow, title: &str, schema: impl Fn(&CompiledNode) -> Value) -> Value {
    let nodes = flow.nodes.iter();
    let of_nodes: Map<String, Value> = nodes
        .map(|node| (node.id.to_string(), schema(node)))
        .collect();
    json!({ "title": title, "type": "object", "properties": of_nodes })
}

fn ports(flow: &CompiledFlow) -> Value {
    by_node(flow, "Ports", |node| {
        let outputs = node.outputs.iter();
        let values = outputs.filter(|port| port.data_type != DataType::Flow);
        let of_ports: Map<String, Value> = values
            .map(|port| (port.port_id.clone(), port_schema(port)))
            .collect();
        json!({ "type": "object", "properties": of_ports })
    })
}

fn port_schema(port: &Port) -> Value {
    let mut schema = match port.data_type {
        DataType::String | DataType::Prompt => json!({ "type": "string" }),
        DataType::Number => json!({ "type": "number" }),
        DataType::Boolean => json!({ "type": "boolean" }),
        DataType::Object | DataType::Artifact => json!({ "type": "object" }),
        DataType::Array | DataType::Documents => json!({ "type": "array" }),
        DataType::Score => json!({
            "type": "object",
            "properties": {
                "score": { "type": "number" },
                "canComplete": { "type": "boolean" },
                "reason": { "type": "string" },
            },
        }),
        DataType::Any | DataType::Flow | DataType::Plan => json!({}),
    };
    if let Some(description) = &port.description {
        schema["description"] = description.as_str().into();
    }
    schema
}
