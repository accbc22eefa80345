//! `GET /openapi.json`: the root's routes, for tools that want to know them.

use axum::Json;
use serde_json::{Map, Value, json};

/// A path and what can be done there: method, operation, and the tag it is listed under.
type Path = (&'static str, &'static [(&'static str, &'static str)]);

/// The paths of the root, by tag.
pub(crate) const PATHS: &[(&str, &[Path])] = &[
    (
        "Assistants",
        &[
            ("/assistants/search", &[("post", "search_assistants")]),
            ("/assistants/count", &[("post", "count_assistants")]),
            ("/assistants/{assistant_id}", &[("get", "get_assistant")]),
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
    ("System", &[("/ok", &[("get", "health_check")]), ("/info", &[("get", "get_info")])]),
];

pub(crate) async fn openapi() -> Json<Value> {
    let listed = PATHS.iter().flat_map(|(tag, paths)| paths.iter().map(move |path| (*tag, *path)));
    let paths: Map<String, Value> = listed.map(|(tag, (path, methods))| (path.to_owned(), operations(tag, path, methods))).collect();
    Json(json!({
        "openapi": "3.1.0",
        "info": { "title": "DeerFlow", "version": env!("CARGO_PKG_VERSION") },
        "paths": paths,
    }))
}

fn operations(tag: &str, path: &str, methods: &[(&str, &str)]) -> Value {
    let names = path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let parameters: Vec<Value> = names
        .map(|name| json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string", "format": "uuid" } }))
        .collect();
    let operation = |method: &str, id: &str| {
        let mut operation = json!({ "tags": [tag], "operationId": id, "parameters": parameters });
        if matches!(method, "post" | "patch") {
            operation["requestBody"] = json!({ "content": { "application/json": { "schema": {} } } });
        }
        operation["responses"] = json!({ "default": { "description": "See docs/api.md." } });
        operation
    };
    methods.iter().map(|(method, id)| ((*method).to_owned(), operation(method, id))).collect::<Map<_, _>>().into()
}
