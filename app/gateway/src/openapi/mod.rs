//! The OpenAPI documents of the root and of both dialects. Each route enters the router and the document in one call, so neither has
//! what the other has not; the shapes of bodies are JSON schemas beside this file.

mod operation;
mod page;
mod shape;
mod whole;

pub(crate) use operation::{
    Operation, delete, flag, get, number, patch, post, put, signed, text, texts, whole_number, word,
};
pub(crate) use page::docs;
pub(crate) use shape::Shape;

use std::sync::{Arc, LazyLock};

use axum::Extension;
use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use bytes::Bytes;
use serde_json::{Map, Value, json};
use utoipa::openapi::OpenApi;
use utoipa_axum::router::OpenApiRouter;

use crate::error::ApiError;
use crate::router::GROUPS;
use crate::routes::{App, Reply};
use crate::state::GatewayState;

/// Routes that describe themselves.
pub(crate) type Routes = OpenApiRouter<Arc<GatewayState>>;

/// The groups, in the order in which they are shown.
const TAGS: &[(&str, &str)] = &[
    (
        ASSISTANTS,
        "An agent with its settings. Every graph comes with one.",
    ),
    (
        THREADS,
        "Conversations: what was said, and every state on the way.",
    ),
    (THREAD_RUNS, "The work of an agent on a thread."),
    (
        STATELESS_RUNS,
        "Work on a thread that is made for it and goes with it.",
    ),
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

/// The schemas that operations of DeerFlow's dialect refer to besides.
const DEERFLOW_COMPONENTS: &[&str] = &[include_str!("schemas/deerflow.json")];

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

type Text = LazyLock<Result<Bytes, String>, Box<dyn FnOnce() -> Result<Bytes, String> + Send>>;

/// A document, assembled when it is first asked for. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Document(Arc<Text>);

impl Document {
    /// The document of the root.
    pub(crate) fn of_platform(said: OpenApi) -> Self {
        Self::made(move || assembled(&said))
    }

    /// The document of both dialects.
    pub(crate) fn of_both(platform: OpenApi, deerflow: OpenApi) -> Self {
        Self::made(move || assembled_whole(&platform, &deerflow))
    }

    fn made(assemble: impl FnOnce() -> Result<Value, serde_json::Error> + Send + 'static) -> Self {
        let text = move || {
            assemble()
                .map(|document| document.to_string().into())
                .map_err(|error| error.to_string())
        };
        Self(Arc::new(LazyLock::new(Box::new(text))))
    }
}

/// What the router of the root says of itself, with the schemas that it refers to.
fn assembled(said: &OpenApi) -> Result<Value, serde_json::Error> {
    let about = "Agents, their threads and runs, for clients of the LangGraph Platform. `/api/openapi.json` has the routes of both dialects.";
    document(about, &tags(TAGS, ""), paths_of(said)?, COMPONENTS)
}

/// What both routers say of themselves.
fn assembled_whole(platform: &OpenApi, deerflow: &OpenApi) -> Result<Value, serde_json::Error> {
    let about = "Agents, their threads and runs, in both dialects: at the root that of the LangGraph Platform, under `/api` and its alias \
                 `/api/langgraph` that of DeerFlow. `docs/api.md` describes the differences.";
    let of_deerflow = [TAGS, GROUPS].concat();
    let mut groups = tags(TAGS, "");
    groups.extend(whole::group_ends().flat_map(|end| tags(&of_deerflow, end)));
    document(
        about,
        &groups,
        whole::paths(&paths_of(platform)?, &paths_of(deerflow)?),
        &[COMPONENTS, DEERFLOW_COMPONENTS].concat(),
    )
}

fn tags(groups: &[(&str, &str)], end: &str) -> Vec<Value> {
    groups.iter().map(|(name, description)| json!({ "name": format!("{name}{end}"), "description": description })).collect()
}

fn paths_of(said: &OpenApi) -> Result<Map<String, Value>, serde_json::Error> {
    match serde_json::to_value(&said.paths)? {
        Value::Object(paths) => Ok(paths),
        _ => Ok(Map::new()),
    }
}

fn document(
    about: &str,
    tags: &[Value],
    paths: Map<String, Value>,
    components: &[&str],
) -> Result<Value, serde_json::Error> {
    let mut schemas = Map::new();
    for text in components {
        schemas.extend(serde_json::from_str::<Map<String, Value>>(text)?);
    }
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

/// `GET /openapi.json` and `GET /api/openapi.json`, unless the API is not to describe itself.
pub(crate) async fn openapi(
    State(state): App,
    Extension(Document(document)): Extension<Document>,
) -> Reply {
    if !state.docs_enabled {
        return Err(ApiError::RouteNotFound);
    }
    let text = (*document).clone().map_err(ApiError::Internal)?;
    Ok(([(header::CONTENT_TYPE, "application/json")], text).into_response())
}

#[cfg(test)]
#[path = "openapi_tests.rs"]
mod tests;
