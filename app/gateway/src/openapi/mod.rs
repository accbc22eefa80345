//! The OpenAPI documents of the root and of both dialects. A route and its description are
//! registered in one call, so they cannot diverge. The schemas are derived from the types of bodies
//! and responses.

mod combined;
mod description;
pub(crate) mod groups;
mod operation;
mod routes;
mod schema;

pub(crate) use operation::{Operation, delete, get, patch, post, put};
pub(crate) use routes::{Descriptions, Routes};
pub(crate) use schema::{flag, number, signed, text, texts, whole_number, word};

use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;
use utoipa::openapi::OpenApi;

use crate::responses::documented::DeerFlowError;
use crate::schema::{TypeSchema, plain};

/// Groups in display order.
const TAGS: &[(&str, &str)] = &[
    (
        ASSISTANTS,
        "Agents with their settings. Every graph has a default assistant.",
    ),
    (
        THREADS,
        "Conversations with their messages and state history.",
    ),
    (THREAD_RUNS, "Executions of an agent on a thread."),
    (
        STATELESS_RUNS,
        "Executions of an agent on a temporary thread.",
    ),
    (FLOWS, "Graphs of agents that are written as YAML or JSON."),
    (CRONS, "Scheduled runs."),
    (STORE, "Items stored across threads."),
    (SYSTEM, "Health, metrics and documentation of the server."),
    (ADMIN, "Administration of the installation."),
];
pub(crate) const ASSISTANTS: &str = "Assistants";
pub(crate) const THREADS: &str = "Threads";
pub(crate) const THREAD_RUNS: &str = "Thread Runs";
pub(crate) const STATELESS_RUNS: &str = "Stateless Runs";
pub(crate) const FLOWS: &str = "Flows";
pub(crate) const CRONS: &str = "Crons";
pub(crate) const STORE: &str = "Store";
pub(crate) const SYSTEM: &str = "System";
pub(crate) const ADMIN: &str = "Administration";

type Text = LazyLock<Result<Bytes, String>, Box<dyn FnOnce() -> Result<Bytes, String> + Send>>;

/// A document, assembled at its first use. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Document(Arc<Text>);

impl Document {
    /// The document of the root.
    pub(crate) fn of_platform(described: Arc<Descriptions>) -> Self {
        Self::lazy(move || assemble_platform(&described.build()))
    }

    /// The document of both dialects.
    pub(crate) fn of_both(platform: Arc<Descriptions>, deerflow: Descriptions) -> Self {
        Self::lazy(move || assemble_both(&platform.build(), &deerflow.build()))
    }

    /// Returns the text of the document.
    pub(crate) fn text(&self) -> Result<Bytes, String> {
        (**self.0).clone()
    }

    fn lazy(assemble: impl FnOnce() -> Result<Value, serde_json::Error> + Send + 'static) -> Self {
        let text = move || {
            assemble()
                .map(|document| document.to_string().into())
                .map_err(|error| error.to_string())
        };
        Self(Arc::new(LazyLock::new(Box::new(text))))
    }
}

/// Assembles the root's operations with their schemas.
fn assemble_platform(described: &OpenApi) -> Result<Value, serde_json::Error> {
    let about = "Agents, their threads and runs, for clients of the LangGraph Platform. `/api/openapi.json` has the routes of both dialects.";
    document(
        about,
        &tags(TAGS, ""),
        paths_of(described)?,
        schemas_of([described])?,
    )
}

/// Assembles the operations of both routers.
fn assemble_both(platform: &OpenApi, deerflow: &OpenApi) -> Result<Value, serde_json::Error> {
    let about = "Agents, their threads and runs, in both dialects: at the root that of the LangGraph Platform, under `/api` and its alias \
                 `/api/langgraph` that of DeerFlow. `docs/api.md` describes the differences.";
    let of_deerflow = [TAGS, groups::GROUPS].concat();
    let mut groups = tags(TAGS, "");
    groups.extend(combined::group_ends().flat_map(|end| tags(&of_deerflow, end)));
    let mut schemas = schemas_of([platform, deerflow])?;
    let TypeSchema { root, .. } = TypeSchema::of::<DeerFlowError>();
    schemas.insert(DeerFlowError::name().into_owned(), root);
    document(
        about,
        &groups,
        combined::paths(&paths_of(platform)?, &paths_of(deerflow)?),
        schemas,
    )
}

fn tags(groups: &[(&str, &str)], end: &str) -> Vec<Value> {
    groups.iter().map(|(name, description)| json!({ "name": format!("{name}{end}"), "description": description })).collect()
}

/// Returns the schemas of all types of the operations, by name.
fn schemas_of<'a>(
    described: impl IntoIterator<Item = &'a OpenApi>,
) -> Result<Map<String, Value>, serde_json::Error> {
    let mut all = Map::new();
    for document in described {
        if let Value::Object(schemas) =
            serde_json::to_value(document.components.as_ref().map(|parts| &parts.schemas))?
        {
            all.extend(schemas);
        }
    }
    all.sort_keys();
    all.values_mut().for_each(plain);
    Ok(all)
}

fn paths_of(described: &OpenApi) -> Result<Map<String, Value>, serde_json::Error> {
    match serde_json::to_value(&described.paths)? {
        Value::Object(paths) => Ok(paths),
        _ => Ok(Map::new()),
    }
}

fn document(
    about: &str,
    tags: &[Value],
    paths: Map<String, Value>,
    schemas: Map<String, Value>,
) -> Result<Value, serde_json::Error> {
    Ok(json!({
        "openapi": "3.1.0",
        "info": { "title": "DeerFlow", "version": env!("CARGO_PKG_VERSION"), "description": about },
        "tags": tags,
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": { "key": { "type": "apiKey", "in": "header", "name": "x-api-key" } },
        },
        "security": [{}, { "key": [] }],
    }))
}

#[cfg(test)]
#[path = "openapi_tests.rs"]
mod tests;
