//! JSON of assistants and their versions.

use deerflow_domain::assistants::{Assistant, AssistantVersion};
use harness::clock::iso;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::dialect::Dialect;

/// Returns an assistant. DeerFlow identifies it by its graph.
pub fn assistant_json(assistant: &Assistant, dialect: Dialect) -> Value {
    let content = &assistant.content;
    let id = if dialect.is_platform() {
        assistant.id.to_string()
    } else {
        content.graph.clone()
    };
    json!({
        "assistant_id": id,
        "graph_id": content.graph,
        "config": content.config,
        "context": content.context,
        "metadata": content.metadata,
        "name": content.name,
        "created_at": iso(assistant.created_at),
        "updated_at": iso(assistant.updated_at),
        "version": assistant.version,
        "description": content.description,
    })
}

/// Returns a version of the assistant with the public id `id`.
pub fn version_json(id: Uuid, version: &AssistantVersion) -> Value {
    let content = &version.content;
    json!({
        "assistant_id": id,
        "version": version.version,
        "graph_id": content.graph,
        "config": content.config,
        "context": content.context,
        "metadata": content.metadata,
        "created_at": iso(version.created_at),
        "name": content.name,
        "description": content.description,
    })
}
