//! Metadata of the messages that a task streams.

use std::sync::Arc;

use super::assembly::Assembly;
use crate::runtime::agent::{MessageMeta, RunContext, Task};
use crate::runtime::checkpoint::within;

/// Returns the metadata of the messages that `task` streams.
pub(super) fn task_meta(task: &Task, ctx: &RunContext, assembly: &Assembly) -> Arc<MessageMeta> {
    let namespace = within(&ctx.namespace, &task.namespace());
    Arc::new(MessageMeta {
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
        extra: assembly.facts.clone(),
    })
}
