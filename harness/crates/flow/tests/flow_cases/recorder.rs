//! Records the events and supersteps of a run, and cancels it after an event.

use std::collections::HashMap;
use std::sync::Mutex;

use async_trait::async_trait;
use deerflow_flow::driver::{Progress, RunHooks};
use deerflow_flow::events::{EventBody, FlowEvent, FlowEventSink, compact};
use tokio_util::sync::CancellationToken;

#[derive(Debug, Default)]
pub(crate) struct Recorder {
    pub(crate) lines: Mutex<Vec<String>>,
    pub(crate) order: Mutex<Vec<String>>,
    pub(crate) steps: Mutex<Vec<Vec<String>>>,
    /// Node of each invocation.
    pub(crate) invocations: Mutex<HashMap<String, String>>,
    /// Event after which the run is cancelled.
    pub(crate) cancel_after: Vec<String>,
    pub(crate) cancel: CancellationToken,
}

impl FlowEventSink for Recorder {
    fn emit(&self, event: FlowEvent) {
        let node = event.node_id.clone().unwrap_or_default();
        if let Some(invocation) = &event.invocation_id {
            self.invocations
                .lock()
                .unwrap()
                .insert(invocation.clone(), node.clone());
        }
        let is_end = matches!(
            event.body,
            EventBody::NodeCompleted { .. } | EventBody::NodeFailed { .. }
        );
        if is_end && !node.contains('/') {
            self.order.lock().unwrap().push(node);
        }
        if let Some(line) = compact(&event) {
            if self.cancel_after.contains(&line) {
                self.cancel.cancel();
            }
            self.lines.lock().unwrap().push(line);
        }
    }
}

#[async_trait]
impl RunHooks for Recorder {
    fn superstep(&self, progress: Progress<'_>) {
        let id = |node: &usize| progress.flow.nodes[*node].id.to_string();
        let nodes: Vec<String> = progress.changed.iter().map(id).collect();
        if !nodes.is_empty() {
            self.steps.lock().unwrap().push(nodes);
        }
    }
}
