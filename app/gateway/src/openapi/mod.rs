//! The OpenAPI document of the root. Each route enters the router and the document in one call, so neither has what the other
//! has not; the shapes of bodies are JSON schemas beside this file.

mod operation;
mod page;
mod shape;

pub(crate) use operation::{Operation, delete, flag, get, number, patch, post, put, text, texts, word};
pub(crate) use page::docs;
pub(crate) use shape::Shape;

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use bytes::Bytes;
use serde_json::{Map, Value, json};
use utoipa::openapi::OpenApi;
use utoipa_axum::router::OpenApiRouter;

use crate::error::ApiError;
use crate::routes::{App, Reply};
use crate::state::GatewayState;

/// Routes that describe themselves.
pub(crate) type Routes = OpenApiRouter<Arc<GatewayState>>;

/// The groups, in the order in which they are shown.
const TAGS: &[(&str, &str)] = &[
    (ASSISTANTS, "An agent with its settings. Every graph comes with one."),
    (THREADS, "Conversations: what was said, and every state on the way."),
    (THREAD_RUNS, "The work of an agent on a thread."),
    (STATELESS_RUNS, "Work on a thread that is made for it and goes with it."),
    (CRONS, "Runs that a clock begins."),
    (STORE, "What is remembered beyond a thread."),
    (SYSTEM, "What the server says of itself."),
    (ADMIN, "For whoever manages the installation."),
];
pub(crate) const ASSISTANTS: &str = "Assistants";
pub(crate) const THREADS: &str = "Threads";
pub(crate) const THREAD_RUNS: &str = "Thread Runs";
pub(crate) const STATELESS_RUNS: &str = "Stateless Runs";
pub(crate) const CRONS: &str = "Crons";
pub(crate) const STORE: &str = "Store";
pub(crate) const SYSTEM: &str = "System";
pub(crate) const ADMIN: &str = "Administration";

/// The schemas that operations refer to by name.
const COMPONENTS: &[&str] = &[
    include_str!("schemas/admin.json"),
    include_str!("schemas/assistants.json"),
    include_str!("schemas/common.json"),
    include_str!("schemas/crons.json"),
    include_str!("schemas/runs.json"),
    include_str!("schemas/state.json"),
    include_str!("schemas/store.json"),
    include_str!("schemas/threads.json"),
];

/// The document as it is sent.
#[derive(Debug, Clone)]
pub(crate) struct Document(Result<Bytes, String>);

impl Document {
    /// What a router says of itself, with the schemas that it refers to.
    pub(crate) fn of(said: &OpenApi) -> Self {
        Self(assembled(said).map(|document| document.to_string().into()).map_err(|error| error.to_string()))
    }
}

fn assembled(said: &OpenApi) -> Result<Value, serde_json::Error> {
    let mut schemas = Map::new();
    for text in COMPONENTS {
        schemas.extend(serde_json::from_str::<Map<String, Value>>(text)?);
    }
    let tags: Vec<Value> = TAGS.iter().map(|(name, description)| json!({ "name": name, "description": description })).collect();
    Ok(json!({
        "openapi": "3.1.0",
        "info": {
            "title": "DeerFlow",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Agents, their threads and runs, for clients of the LangGraph Platform.",
        },
        "tags": tags,
        "paths": serde_json::to_value(&said.paths)?,
        "components": {
            "schemas": schemas,
            "securitySchemes": { "key": { "type": "apiKey", "in": "header", "name": "x-api-key" } },
        },
        "security": [{}, { "key": [] }],
    }))
}

/// `GET /openapi.json`, unless the API is not to describe itself.
pub(crate) async fn openapi(State(state): App, Extension(Document(document)): Extension<Document>) -> Reply {
    if !state.docs_enabled {
        return Err(ApiError::RouteNotFound);
    }
    let text = document.map_err(ApiError::Internal)?;
    Ok(([(header::CONTENT_TYPE, "application/json")], text).into_response())
}

#[cfg(test)]
#[path = "openapi_tests.rs"]
mod tests;
