//! Tasks of the current superstep, and the origin of the messages that they stream.

use std::collections::HashMap;
use std::sync::Arc;

use deerflow_runtime::agent::{MessageMeta, RunContext, Task};
use deerflow_runtime::checkpoint::within;
use serde_json::Map;

/// Tasks by node id. Nodes of sub-flows have ids of the form `outer/inner`.
#[derive(Debug, Default)]
pub(super) struct Tasks(HashMap<String, Entry>);

#[derive(Debug)]
struct Entry {
    task: Arc<Task>,
    meta: Arc<MessageMeta>,
}

impl Tasks {
    /// Adds a task that starts.
    pub(super) fn start(&mut self, ctx: &RunContext, task: Task) -> Arc<Task> {
        let meta = Arc::new(meta_of(ctx, &task));
        let (node, task) = (task.node.clone(), Arc::new(task));
        self.0.insert(
            node,
            Entry {
                task: task.clone(),
                meta,
            },
        );
        task
    }

    pub(super) fn task(&self, node: &str) -> Option<Arc<Task>> {
        self.0.get(node).map(|entry| entry.task.clone())
    }

    pub(super) fn meta(&self, node: &str) -> Option<Arc<MessageMeta>> {
        self.0.get(node).map(|entry| entry.meta.clone())
    }
}

fn meta_of(ctx: &RunContext, task: &Task) -> MessageMeta {
    let namespace = within(&ctx.namespace, &task.namespace());
    MessageMeta {
        thread_id: ctx.thread_id.to_string(),
        run_id: ctx.run_id.to_string(),
        langgraph_step: task.step,
        langgraph_node: task.node.clone(),
        langgraph_triggers: task.triggers(),
        langgraph_path: task.path(),
        checkpoint_ns: if ctx.namespace.is_empty() {
            namespace.clone()
        } else {
            ctx.namespace.to_string()
        },
        langgraph_checkpoint_ns: namespace,
        extra: Map::new(),
    }
}
