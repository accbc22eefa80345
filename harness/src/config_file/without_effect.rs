//! Settings of an older `config.yaml` that load and that nothing here obeys: said where they ask for something.

use std::path::Path;

use crate::config::dotted;
use serde_json::{Value, json};

use super::document::Node;
use super::error::{Origin, Problem, Warning};

/// A setting, the value with which it asks for nothing, and what to know of it otherwise.
struct Idle {
    key: &'static [&'static str],
    value: fn(&Value) -> bool,
    message: &'static str,
}

const fn idle(key: &'static [&'static str], value: fn(&Value) -> bool, message: &'static str) -> Idle {
    Idle { key, value, message }
}

static IDLE: &[Idle] = &[
    idle(&["plugins"], is_empty, PYTHON),
    idle(&["extensions", "middlewares"], is_empty, PYTHON),
    idle(&["extensions", "mcpInterceptors"], is_empty, PYTHON),
    idle(&["skill_evolution", "enabled"], is_off, "has no effect: agents do not change skills by themselves"),
    idle(&["tool_progress", "enabled"], is_off, "has no effect: see `loop_detection` for runs that do not get on"),
    idle(&["scheduler", "enabled"], is_off, "has no effect: scheduled tasks are not there yet; crons of the root API are"),
    idle(&["mcp_tasks", "enabled"], is_off, "has no effect: tasks of MCP servers are called as tools"),
    idle(&["channel_connections", "enabled"], is_off, "has no effect: channels are not there yet"),
    idle(
        &["agent_storage", "backend"],
        |value| *value == json!("file"),
        "has no effect: custom agents are files, and agents in a database are not looked for",
    ),
    idle(
        &["sandbox", "ownership", "type"],
        |value| value.is_null() || *value == json!("memory"),
        "has no effect: a sandbox belongs to the run that the database gives to a node",
    ),
    idle(&["run_events", "track_token_usage"], |value| *value == json!(true), "has no effect: the use of tokens is always tracked"),
    idle(&["database", "echo_sql"], is_off, "has no effect: `log_level: debug` shows what the database is asked"),
    idle(
        &["memory", "backend_config", "model"],
        Value::is_null,
        "has no effect: memories are made by the entry of `models` that `memory.model_name` names, or by the first one",
    ),
];

const PYTHON: &str = "names Python code, which this server cannot load; it has no effect";

fn is_empty(value: &Value) -> bool {
    value.as_array().is_none_or(Vec::is_empty)
}

fn is_off(value: &Value) -> bool {
    *value != json!(true)
}

/// What the file asks for in vain.
pub(super) fn warnings(root: &Node, path: &Path) -> Vec<Warning> {
    let asked = IDLE.iter().filter_map(|idle| {
        let (node, whole) = root.follow(idle.key);
        let asks = whole && !(idle.value)(&node.to_json());
        asks.then(|| Warning {
            origin: Origin::File { path: path.to_owned(), place: node.place },
            key: dotted(idle.key),
            message: idle.message.to_owned(),
        })
    });
    asked.collect()
}

/// What would protect less than it says: a start with it would be worse than none.
pub(super) fn refusals(root: &Node, path: &Path) -> Vec<Problem> {
    let (node, whole) = root.follow(&["authorization", "enabled"]);
    let asks = whole && !is_off(&node.to_json());
    let message = "is true, but roles are not enforced here: everybody who gets in could use every tool and model. Set it to false, \
                   and see `guardrails` for rules about tools"
        .to_owned();
    let problem =
        || Problem { origin: Origin::File { path: path.to_owned(), place: node.place }, key: "authorization.enabled".to_owned(), message };
    asks.then(problem).into_iter().collect()
}
