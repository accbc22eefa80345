//! Names of LangGraph Platform in the metadata of events.

use serde_json::{Map, Value, json};

use crate::agent::Task;
use crate::checkpoint::within;

/// Adds the position of a task of the agent at `namespace`.
pub(super) fn add_task(fields: &mut Map<String, Value>, task: &Task, namespace: &str) {
    let mut add = |key: &str, value: Value| fields.insert(key.to_owned(), value);
    add("langgraph_step", json!(task.step));
    add("langgraph_node", json!(task.node));
    add("langgraph_triggers", json!(task.triggers()));
    add("langgraph_path", json!(task.path()));
    add(
        "langgraph_checkpoint_ns",
        json!(within(namespace, &task.namespace())),
    );
}
