//! Starts and ends of the run and of its nested agents.

use serde_json::json;

use super::tools::ToolCalls;
use crate::thread_log::event::{Channel, Draft, Namespace, StatusChange};

/// Agents of a run that have started and not ended.
#[derive(Debug)]
pub(super) struct Lifecycle {
    graph: String,
    /// Open nested agents with their names, in the order of their starts.
    open: Vec<(Namespace, String)>,
}

impl Lifecycle {
    pub(super) fn new(graph: &str) -> Self {
        Self {
            graph: graph.to_owned(),
            open: Vec::new(),
        }
    }

    /// Reports the start of the run.
    pub(super) fn begun(&self) -> Draft {
        change(Namespace::new(), "running", &self.graph, None, None)
    }

    /// Reports the end of the run.
    pub(super) fn ended(&self, status: &'static str, error: Option<String>) -> Draft {
        let error = error.filter(|_| status == "failed");
        change(Namespace::new(), status, &self.graph, None, error)
    }

    /// Reports the start of the agents on the path to `namespace` that have not started yet.
    pub(super) fn enter(
        &mut self,
        namespace: &Namespace,
        calls: &ToolCalls,
        events: &mut Vec<Draft>,
    ) {
        for depth in 1..=namespace.len() {
            let inner = &namespace[..depth];
            if self.open.iter().any(|(open, _)| open == inner) {
                continue;
            }
            let call = calls.of_namespace(inner);
            let node = inner[depth - 1].split(':').next().unwrap_or_default();
            let graph = call.map_or(node, |call| call.agent()).to_owned();
            let trigger = call.map(|call| call.id.clone());
            events.push(change(inner.to_vec(), "started", &graph, trigger, None));
            self.open.push((inner.to_vec(), graph));
        }
    }

    /// Reports the end of the agent at `namespace` and of those inside of it, if they are open.
    pub(super) fn close(
        &mut self,
        namespace: &Namespace,
        status: &'static str,
        events: &mut Vec<Draft>,
    ) {
        let (ended, open) = std::mem::take(&mut self.open)
            .into_iter()
            .partition::<Vec<_>, _>(|(open, _)| open.starts_with(namespace));
        self.open = open;
        for (namespace, graph) in ended.into_iter().rev() {
            events.push(change(namespace, status, &graph, None, None));
        }
    }

    /// Reports the end of all nested agents, innermost first.
    pub(super) fn close_all(&mut self, status: &'static str, events: &mut Vec<Draft>) {
        self.close(&Namespace::new(), status, events);
    }
}

fn change(
    namespace: Namespace,
    status: &'static str,
    graph: &str,
    trigger: Option<String>,
    error: Option<String>,
) -> Draft {
    let mut data = json!({ "event": status, "graph_name": graph });
    if let Some(trigger) = trigger {
        data["trigger_call_id"] = trigger.into();
    }
    if status == "failed" && namespace.is_empty() {
        let unknown = || "the run failed".to_owned();
        data["error"] = error.unwrap_or_else(unknown).into();
    }
    Draft {
        change: Some(StatusChange {
            status,
            graph: graph.to_owned(),
        }),
        ..Draft::new(Channel::Lifecycle, namespace, &data)
    }
}
