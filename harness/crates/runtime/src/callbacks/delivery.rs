//! Collects the files that a run presented to the user, by tool.

use indexmap::{IndexMap, IndexSet};
use serde_json::{Value, json};

use crate::agent::{Task, TaskEnd};
use deerflow_core::state::{StateUpdate, ThreadState};

/// Channel with the files that were presented on a thread.
const ARTIFACTS: &str = "artifacts";

/// Presented files by tool.
#[derive(Debug, Default)]
pub(crate) struct RunDelivery(IndexMap<String, IndexSet<String>>);

impl RunDelivery {
    pub(crate) fn on_event(&mut self, task: &Task, end: &TaskEnd) {
        let Some(update) = end.update.as_ref().filter(|_| task.call.is_some()) else {
            return;
        };
        let presented = paths(update.channels.get(ARTIFACTS));
        if let Some(tool) = tool_of(update).filter(|_| !presented.is_empty()) {
            self.0
                .entry(tool.to_owned())
                .or_default()
                .extend(presented.into_iter().map(str::to_owned));
        }
    }

    /// Builds the receipt of a run that started with the state `before` and ended with the state
    /// `after`. It lists the files that were added to the thread, without files of aborted calls. A
    /// file of an earlier attempt has no tool, because the calls of that attempt are unknown.
    pub(crate) fn receipt(&self, before: &ThreadState, after: &ThreadState) -> Value {
        let (previous, current) = (
            paths(before.channel(ARTIFACTS)),
            paths(after.channel(ARTIFACTS)),
        );
        let has_tool = |path: &str| self.0.values().any(|paths| paths.contains(path));
        let presented: Vec<&str> = current
            .iter()
            .copied()
            .filter(|path| !previous.contains(path) || has_tool(path))
            .collect();
        let in_thread = |paths: &IndexSet<String>| -> Vec<Value> {
            paths
                .iter()
                .filter(|path| current.contains(path.as_str()))
                .map(|path| path.as_str().into())
                .collect()
        };
        let by_tool = self
            .0
            .iter()
            .map(|(tool, paths)| (tool.clone(), in_thread(paths)))
            .filter(|(_, in_thread)| !in_thread.is_empty());
        json!({ "presented": presented.len(), "paths": presented, "by_tool": by_tool.collect::<IndexMap<_, _>>() })
    }
}

/// Returns the tool whose result is the first message of its call's update.
fn tool_of(update: &StateUpdate) -> Option<&str> {
    update
        .messages
        .first()
        .filter(|message| message.tool_call_id().is_some())?
        .name
        .as_deref()
}

fn paths(artifacts: Option<&Value>) -> IndexSet<&str> {
    artifacts
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect()
}

#[cfg(test)]
#[path = "delivery_tests.rs"]
mod tests;
