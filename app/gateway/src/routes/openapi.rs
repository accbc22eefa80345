//! `GET /openapi.json`: the root's routes, for tools that want to know them.

use axum::Json;
use axum::extract::State;
use serde_json::{Map, Value, json};

use crate::error::ApiError;
use crate::routes::{Answer, App};

/// A path and what can be done there: method, operation, and the tag it is listed under.
type Path = (&'static str, &'static [(&'static str, &'static str)]);

/// The paths of the root, by tag.
pub(crate) const PATHS: &[(&str, &[Path])] = &[
    (
        "Assistants",
        &[
            ("/assistants", &[("post", "create_assistant")]),
            ("/assistants/search", &[("post", "search_assistants")]),
            ("/assistants/count", &[("post", "count_assistants")]),
            ("/assistants/{assistant_id}", &[("get", "get_assistant"), ("patch", "patch_assistant"), ("delete", "delete_assistant")]),
            ("/assistants/{assistant_id}/versions", &[("post", "get_assistant_versions")]),
            ("/assistants/{assistant_id}/latest", &[("post", "set_latest_assistant_version")]),
            ("/assistants/{assistant_id}/subgraphs", &[("get", "get_assistant_subgraphs")]),
            ("/assistants/{assistant_id}/subgraphs/{namespace}", &[("get", "get_assistant_subgraphs_by_namespace")]),
            ("/assistants/{assistant_id}/graph", &[("get", "get_assistant_graph")]),
            ("/assistants/{assistant_id}/schemas", &[("get", "get_assistant_schemas")]),
        ],
    ),
    (
        "Threads",
        &[
            ("/threads", &[("post", "create_thread")]),
            ("/threads/search", &[("post", "search_threads")]),
            ("/threads/count", &[("post", "count_threads")]),
            ("/threads/prune", &[("post", "prune_threads")]),
            ("/threads/{thread_id}", &[("get", "get_thread"), ("patch", "patch_thread"), ("delete", "delete_thread")]),
            ("/threads/{thread_id}/copy", &[("post", "copy_thread")]),
            ("/threads/{thread_id}/state", &[("get", "get_thread_state"), ("post", "update_thread_state")]),
            ("/threads/{thread_id}/state/checkpoint", &[("post", "post_thread_state_at_checkpoint")]),
            ("/threads/{thread_id}/state/{checkpoint_id}", &[("get", "get_thread_state_at_checkpoint")]),
            ("/threads/{thread_id}/history", &[("get", "get_thread_history"), ("post", "post_thread_history")]),
            ("/threads/{thread_id}/stream", &[("get", "join_thread_stream")]),
        ],
    ),
    (
        "Runs",
        &[
            ("/threads/{thread_id}/runs", &[("get", "list_runs"), ("post", "create_run")]),
            ("/threads/{thread_id}/runs/stream", &[("post", "stream_run")]),
            ("/threads/{thread_id}/runs/wait", &[("post", "wait_run")]),
            ("/threads/{thread_id}/runs/{run_id}", &[("get", "get_run"), ("delete", "delete_run")]),
            ("/threads/{thread_id}/runs/{run_id}/cancel", &[("post", "cancel_run")]),
            ("/threads/{thread_id}/runs/{run_id}/join", &[("get", "join_run")]),
            ("/threads/{thread_id}/runs/{run_id}/stream", &[("get", "join_run_stream")]),
            ("/runs/cancel", &[("post", "cancel_runs")]),
        ],
    ),
    (
        "Stateless Runs",
        &[
            ("/runs", &[("post", "create_stateless_run")]),
            ("/runs/stream", &[("post", "stream_stateless_run")]),
            ("/runs/wait", &[("post", "wait_stateless_run")]),
            ("/runs/batch", &[("post", "create_run_batch")]),
        ],
    ),
    (
        "Crons",
        &[
            ("/threads/{thread_id}/runs/crons", &[("post", "create_thread_cron")]),
            ("/runs/crons", &[("post", "create_cron")]),
            ("/runs/crons/search", &[("post", "search_crons")]),
            ("/runs/crons/count", &[("post", "count_crons")]),
            ("/runs/crons/{cron_id}", &[("get", "get_cron"), ("patch", "patch_cron"), ("delete", "delete_cron")]),
        ],
    ),
    (
        "Store",
        &[
            ("/store/items", &[("get", "get_item"), ("put", "put_item"), ("delete", "delete_item")]),
            ("/store/items/search", &[("post", "search_items")]),
            ("/store/namespaces", &[("post", "list_namespaces")]),
        ],
    ),
    ("System", &[("/ok", &[("get", "health_check")]), ("/info", &[("get", "get_info")]), ("/metrics", &[("get", "get_metrics")])]),
];

pub(crate) async fn openapi(State(state): App) -> Answer {
    if !state.docs_enabled {
        return Err(ApiError::RouteNotFound);
    }
    let listed = PATHS.iter().flat_map(|(tag, paths)| paths.iter().map(move |path| (*tag, *path)));
    let paths: Map<String, Value> = listed.map(|(tag, (path, methods))| (path.to_owned(), operations(tag, path, methods))).collect();
    Ok(Json(json!({
        "openapi": "3.1.0",
        "info": { "title": "DeerFlow", "version": env!("CARGO_PKG_VERSION") },
        "paths": paths,
    })))
}

fn operations(tag: &str, path: &str, methods: &[(&str, &str)]) -> Value {
    let names = path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let parameters: Vec<Value> =
        names.map(|name| json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } })).collect();
    let operation = |method: &str, id: &str| {
        let mut operation = json!({ "tags": [tag], "operationId": id, "parameters": parameters });
        if matches!(method, "post" | "put" | "patch") {
            operation["requestBody"] = json!({ "content": { "application/json": { "schema": {} } } });
        }
        operation["responses"] = json!({ "default": { "description": "See docs/api.md." } });
        operation
    };
    methods.iter().map(|(method, id)| ((*method).to_owned(), operation(method, id))).collect::<Map<_, _>>().into()
}
