//! The description of the root's API: which calls there are, and what each is for.

use serde_json::{Map, Value, json};

/// Methods, path, group, purpose.
type Row = (&'static str, &'static str, &'static str, &'static str);

const ROWS: &[Row] = &[
    ("get", "/ok", "System", "Whether the server lives"),
    ("get", "/info", "System", "The version, and which parts of the API there are"),
    ("get", "/metrics", "System", "Figures for Prometheus"),
    ("get", "/openapi.json", "System", "This description"),
    ("post", "/assistants", "Assistants", "Make an assistant"),
    ("post", "/assistants/search", "Assistants", "Find assistants"),
    ("post", "/assistants/count", "Assistants", "Count assistants"),
    ("get patch delete", "/assistants/{assistant_id}", "Assistants", "One assistant"),
    ("get", "/assistants/{assistant_id}/graph", "Assistants", "The graph of an assistant"),
    ("get", "/assistants/{assistant_id}/schemas", "Assistants", "The schemas of an assistant"),
    ("get", "/assistants/{assistant_id}/subgraphs", "Assistants", "The graphs inside of an assistant"),
    ("get", "/assistants/{assistant_id}/subgraphs/{namespace}", "Assistants", "One graph inside of an assistant"),
    ("post", "/assistants/{assistant_id}/versions", "Assistants", "The versions of an assistant"),
    ("post", "/assistants/{assistant_id}/latest", "Assistants", "Choose the version in force"),
    ("post", "/threads", "Threads", "Make a thread"),
    ("post", "/threads/search", "Threads", "Find threads"),
    ("post", "/threads/count", "Threads", "Count threads"),
    ("post", "/threads/prune", "Threads", "Remove threads"),
    ("get patch delete", "/threads/{thread_id}", "Threads", "One thread"),
    ("post", "/threads/{thread_id}/copy", "Threads", "Copy a thread"),
    ("get post", "/threads/{thread_id}/state", "Threads", "The newest state of a thread, or a change of it"),
    ("get", "/threads/{thread_id}/state/{checkpoint_id}", "Threads", "The state at a checkpoint"),
    ("post", "/threads/{thread_id}/state/checkpoint", "Threads", "The state at a checkpoint in the body"),
    ("get post", "/threads/{thread_id}/history", "Threads", "The states of a thread, newest first"),
    ("get", "/threads/{thread_id}/stream", "Threads", "The events of a thread's runs as they come"),
    ("get post", "/threads/{thread_id}/runs", "Runs", "The runs of a thread, or a new one in the background"),
    ("post", "/threads/{thread_id}/runs/stream", "Runs", "A run and its events as they come"),
    ("post", "/threads/{thread_id}/runs/wait", "Runs", "A run and its last values"),
    ("get delete", "/threads/{thread_id}/runs/{run_id}", "Runs", "One run"),
    ("post", "/threads/{thread_id}/runs/{run_id}/cancel", "Runs", "Cancel a run"),
    ("get", "/threads/{thread_id}/runs/{run_id}/join", "Runs", "Wait for a run"),
    ("get", "/threads/{thread_id}/runs/{run_id}/stream", "Runs", "Follow a run"),
    ("post", "/runs", "Stateless runs", "A run in the background on a thread of its own"),
    ("post", "/runs/stream", "Stateless runs", "The same, with its events as they come"),
    ("post", "/runs/wait", "Stateless runs", "The same, with its last values"),
    ("post", "/runs/batch", "Stateless runs", "Several runs in the background"),
    ("post", "/runs/cancel", "Runs", "Cancel several runs"),
    ("post", "/runs/crons", "Crons", "Repeat a run by the clock"),
    ("post", "/threads/{thread_id}/runs/crons", "Crons", "Repeat a run on a thread by the clock"),
    ("post", "/runs/crons/search", "Crons", "Find crons"),
    ("post", "/runs/crons/count", "Crons", "Count crons"),
    ("get patch delete", "/runs/crons/{cron_id}", "Crons", "One cron"),
    ("get put delete", "/store/items", "Store", "One item of long-term memory"),
    ("post", "/store/items/search", "Store", "Find items"),
    ("post", "/store/namespaces", "Store", "List the namespaces that hold items"),
];

/// The description as OpenAPI 3.1.
pub(crate) fn description() -> Value {
    let paths: Map<String, Value> = ROWS.iter().map(|row| (row.1.to_owned(), path_item(row))).collect();
    json!({
        "openapi": "3.1.0",
        "info": { "title": "DeerFlow", "version": env!("CARGO_PKG_VERSION") },
        "paths": paths,
        "components": {
            "schemas": {
                "ErrorResponse": { "type": "object", "properties": { "detail": { "type": "string" } }, "required": ["detail"] },
            },
            "securitySchemes": { "key": { "type": "apiKey", "in": "header", "name": "x-api-key" } },
        },
    })
}

fn path_item((methods, path, tag, summary): &Row) -> Value {
    let names = path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let parameters: Vec<Value> =
        names.map(|name| json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } })).collect();
    let mut item: Map<String, Value> =
        methods.split(' ').map(|method| (method.to_owned(), operation(method, path, tag, summary))).collect();
    if !parameters.is_empty() {
        item.insert("parameters".to_owned(), parameters.into());
    }
    item.into()
}

fn operation(method: &str, path: &str, tag: &str, summary: &str) -> Value {
    let words = path.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let id: Vec<&str> = std::iter::once(method).chain(words).collect();
    let error = json!({ "description": "Refused", "content": { "application/json": { "schema": { "$ref": "#/components/schemas/ErrorResponse" } } } });
    let mut operation = json!({
        "tags": [tag],
        "summary": summary,
        "operationId": id.join("_"),
        "responses": { "2XX": { "description": "Done" }, "4XX": error },
    });
    if matches!(method, "post" | "put" | "patch") {
        let body = json!({ "required": true, "content": { "application/json": { "schema": { "type": ["object", "array"] } } } });
        operation["requestBody"] = body;
    }
    operation
}
