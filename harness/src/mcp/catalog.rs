//! Validates and sanitises the tool list that a server reports.

use std::borrow::Cow;

use rmcp::model::Tool;
use serde_json::{Map, Value};

use super::names::exposed_name;
use super::spec::ServerSpec;
use crate::messages::framework_tags::neutralised;
use crate::models::ToolSchema;
use crate::tools::Effect;

/// Maximum number of tools of one server.
pub(super) const MAX_SERVER_TOOLS: usize = 1_000;
/// Maximum length of a tool description, in characters.
const MAX_DESCRIPTION_CHARS: usize = 8_000;
/// Maximum length of the argument schema of one tool, in bytes.
const MAX_SCHEMA_BYTES: usize = 64 * 1024;

/// Validated tool of a server.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ListedTool {
    /// Name of the tool at the server.
    pub(super) original: String,
    /// Schema under which models see the tool.
    pub(super) schema: ToolSchema,
    /// Effect of repeating a call.
    pub(super) effect: Effect,
}

/// Returns the usable tools of a server and logs why the others are skipped.
pub(super) fn usable_tools(spec: &ServerSpec, tools: Vec<Tool>) -> Vec<ListedTool> {
    let count = tools.len();
    if count > MAX_SERVER_TOOLS {
        tracing::warn!(server = %spec.name, count, limit = MAX_SERVER_TOOLS, "mcp server has too many tools, skipping the rest");
    }
    let mut refused = 0_usize;
    let mut usable = Vec::new();
    for tool in tools
        .into_iter()
        .take(MAX_SERVER_TOOLS)
        .filter(|tool| !spec.hidden.contains(&*tool.name))
    {
        match validated(spec, tool) {
            Ok(tool) => usable.push(tool),
            Err((name, reason)) => {
                refused += 1;
                // A server may report thousands of unusable tools, so the log is limited.
                if refused <= 10 {
                    tracing::warn!(server = %spec.name, tool = %name, reason, "skipping unusable tool of an mcp server");
                }
            }
        }
    }
    usable
}

fn validated(spec: &ServerSpec, tool: Tool) -> Result<ListedTool, (String, &'static str)> {
    let refuse = |reason| (tool.name.chars().take(100).collect::<String>(), reason);
    let name = exposed_name(spec, &tool.name).map_err(refuse)?;
    let mut parameters = (*tool.input_schema).clone();
    if serde_json::to_string(&parameters).map_or(true, |text| text.len() > MAX_SCHEMA_BYTES) {
        return Err(refuse("its schema is too long"));
    }
    normalize_schema(&mut parameters).map_err(refuse)?;
    let described = tool
        .description
        .as_deref()
        .or(tool.title.as_deref())
        .unwrap_or_default();
    let description: String = described.chars().take(MAX_DESCRIPTION_CHARS).collect();
    let parameters = sanitize_schema(Value::Object(parameters)).map_err(refuse)?;
    let schema = ToolSchema {
        name,
        description: neutralised(&description).into_owned(),
        parameters,
    };
    Ok(ListedTool {
        original: tool.name.to_string(),
        effect: effect(&tool),
        schema,
    })
}

/// Normalises a schema to the form that providers require: an object with properties. One invalid
/// tool schema makes providers reject the whole request.
fn normalize_schema(schema: &mut Map<String, Value>) -> Result<(), &'static str> {
    schema.entry("type").or_insert_with(|| "object".into());
    let properties = schema
        .entry("properties")
        .or_insert_with(|| Value::Object(Map::new()));
    let Some(properties) = properties.as_object() else {
        return Err("`properties` of its schema is not an object");
    };
    if properties.values().any(|property| !property.is_object()) {
        return Err("a property of its schema is not an object");
    }
    let is_empty = properties.is_empty();
    if schema["type"] != "object" {
        return Err("its schema is not of type `object`");
    }
    if schema.contains_key("$ref") {
        return Err("its schema is a `$ref`");
    }
    for choice in ["oneOf", "anyOf", "allOf", "not", "enum"] {
        // Next to `properties` these keywords only restrict combinations, and the server checks
        // those itself.
        if schema.shift_remove(choice).is_some() && is_empty {
            return Err("its schema is a choice without properties");
        }
    }
    let is_names = |required: &Value| {
        required
            .as_array()
            .is_some_and(|names| names.iter().all(Value::is_string))
    };
    if schema
        .get("required")
        .is_some_and(|required| !is_names(required))
    {
        schema.shift_remove("required");
    }
    Ok(())
}

/// Escapes framework tags in all texts of the schema. Returns an error for a tag in a field name:
/// the server expects its field names unchanged.
fn sanitize_schema(schema: Value) -> Result<Value, &'static str> {
    match schema {
        Value::String(text) => Ok(neutralised(&text).into_owned().into()),
        Value::Array(items) => items.into_iter().map(sanitize_schema).collect(),
        Value::Object(fields) => {
            if fields
                .keys()
                .any(|name| matches!(neutralised(name), Cow::Owned(_)))
            {
                return Err("a field name in its schema is a framework tag");
            }
            fields
                .into_iter()
                .map(|(name, value)| Ok((name, sanitize_schema(value)?)))
                .collect::<Result<Map<_, _>, _>>()
                .map(Value::Object)
        }
        other => Ok(other),
    }
}

/// Returns the effect that the server's annotations declare. A false annotation can only harm the
/// server itself, because a repeated call goes to the same server.
fn effect(tool: &Tool) -> Effect {
    match &tool.annotations {
        Some(hints) if hints.read_only_hint == Some(true) => Effect::Pure,
        Some(hints) if hints.idempotent_hint == Some(true) => Effect::Keyed,
        _ => Effect::Unsafe,
    }
}

#[cfg(test)]
#[path = "catalog_tests.rs"]
mod tests;
