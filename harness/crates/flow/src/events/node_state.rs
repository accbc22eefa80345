//! State of each node of a run, derived from its events.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::{Map, Value};

use super::event::{EventBody, FlowEvent};
use crate::adapter::{FlowError, PromptSegment, TurnWarning, Usage};
use crate::machine::add_usage;

/// Status of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum NodeStatus {
    /// Not visited.
    #[default]
    Idle,
    /// At work.
    Running,
    /// Completed.
    Completed,
    /// Failed.
    Failed,
    /// Passed over: its kind has no driver.
    Skipped,
    /// Waits for an answer.
    Waiting,
    /// The run ended before the visit did.
    Cancelled,
}

/// State of a node.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeState {
    /// Status.
    pub status: NodeStatus,
    /// Kind.
    pub node_kind: String,
    /// Agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// Latest visit.
    pub visit: u64,
    /// Attempts of the latest visit.
    pub attempts: u32,
    /// Input of the latest visit.
    pub input: NodeTrace,
    /// Sums over all turns.
    pub usage: Usage,
    /// Report of the latest turn.
    pub turn: TurnReport,
    /// Warnings of the latest visit.
    pub warnings: Vec<TurnWarning>,
    /// Times of the latest visit.
    pub times: NodeTimes,
    /// Error of the latest visit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_trace: Option<FlowError>,
    /// Type of the last event.
    pub last_event: String,
}

/// Input of a visit.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeTrace {
    /// Values of input ports.
    pub inputs: Map<String, Value>,
    /// Parts of the prompt.
    pub prompt_sources: Vec<PromptSegment>,
}

/// Report of a turn in addition to its text.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TurnReport {
    /// Text so far of a turn that runs.
    pub text: String,
    /// Reasoning.
    pub reasoning_text: String,
    /// Tool calls.
    pub tool_calls: Vec<Value>,
    /// Artifacts.
    pub artifacts: Vec<Value>,
}

/// Times of a visit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeTimes {
    /// Start.
    pub started_at: Option<DateTime<Utc>>,
    /// End.
    pub ended_at: Option<DateTime<Utc>>,
    /// Duration.
    pub duration_ms: Option<u64>,
}

/// States of the nodes of a run, by node id.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(transparent)]
pub struct NodeStates {
    nodes: BTreeMap<String, NodeState>,
}

impl NodeStates {
    /// Returns the state of a node that had an event.
    pub fn get(&self, node: &str) -> Option<&NodeState> {
        self.nodes.get(node)
    }

    /// Returns the states by node id.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &NodeState)> {
        self.nodes.iter().map(|(id, state)| (id.as_str(), state))
    }

    /// Applies the next event of the run.
    pub fn apply(&mut self, event: &FlowEvent) {
        match &event.body {
            EventBody::RunInterrupted(interrupts) => self.interrupt(interrupts),
            EventBody::RunCompleted { .. } | EventBody::RunFailed(_) | EventBody::RunCancelled => {
                self.end(|_| NodeStatus::Cancelled)
            }
            EventBody::RunStarted(_) | EventBody::RunResumed | EventBody::EdgeTaken { .. } => {}
            _ => {
                if let Some(node) = &event.node_id {
                    self.nodes.entry(node.clone()).or_default().apply(event);
                }
            }
        }
    }

    fn interrupt(&mut self, interrupts: &[Value]) {
        let asks = |node: &str| {
            interrupts
                .iter()
                .filter_map(|interrupt| interrupt["node"].as_str())
                .any(|asking| {
                    let inner = asking.strip_prefix(node);
                    inner.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
                })
        };
        self.end(|node| {
            if asks(node) {
                NodeStatus::Waiting
            } else {
                NodeStatus::Cancelled
            }
        });
    }

    fn end(&mut self, status: impl Fn(&str) -> NodeStatus) {
        for (node, state) in &mut self.nodes {
            if state.status == NodeStatus::Running {
                state.status = status(node);
            }
        }
    }
}

impl NodeState {
    fn apply(&mut self, event: &FlowEvent) {
        event.body.event_type().clone_into(&mut self.last_event);
        match &event.body {
            EventBody::NodeStarted {
                kind,
                visit,
                inputs,
            } => {
                *self = Self {
                    status: NodeStatus::Running,
                    node_kind: kind.clone(),
                    agent_id: self.agent_id.take(),
                    visit: *visit,
                    attempts: 1,
                    input: NodeTrace {
                        inputs: inputs.clone(),
                        ..NodeTrace::default()
                    },
                    usage: std::mem::take(&mut self.usage),
                    times: NodeTimes {
                        started_at: Some(event.timestamp),
                        ..NodeTimes::default()
                    },
                    last_event: std::mem::take(&mut self.last_event),
                    ..Self::default()
                };
            }
            EventBody::NodeCompleted {
                action,
                duration_ms,
                ..
            } => {
                let skipped = action.as_deref() == Some("skipped");
                let status = if skipped {
                    NodeStatus::Skipped
                } else {
                    NodeStatus::Completed
                };
                self.finish(status, event.timestamp, *duration_ms);
            }
            EventBody::NodeFailed {
                error, duration_ms, ..
            } => {
                self.error_trace = Some(error.clone());
                self.finish(NodeStatus::Failed, event.timestamp, *duration_ms);
            }
            EventBody::NodeRetry { attempt, .. } => {
                self.attempts = *attempt;
                self.turn = TurnReport::default();
            }
            EventBody::AgentSelected { prompt, .. } => {
                self.agent_id.clone_from(&event.agent_id);
                self.input.prompt_sources = prompt.to_vec();
            }
            EventBody::Delta(delta) => {
                self.turn.text.push_str(&delta.text);
                self.turn.reasoning_text.push_str(&delta.reasoning);
            }
            EventBody::TurnCompleted {
                usage,
                reasoning,
                tool_calls,
                artifacts,
                ..
            } => {
                add_usage(&mut self.usage, usage);
                if let Some(reasoning) = reasoning {
                    self.turn.reasoning_text.clone_from(reasoning);
                }
                self.turn.tool_calls.clone_from(tool_calls);
                self.turn.artifacts.clone_from(artifacts);
            }
            EventBody::TurnFailed { usage, .. } => add_usage(&mut self.usage, usage),
            EventBody::Warning { code, message } => {
                self.warnings.push(TurnWarning {
                    code: code.clone(),
                    message: message.clone(),
                });
            }
            _ => {}
        }
    }

    fn finish(&mut self, status: NodeStatus, at: DateTime<Utc>, duration_ms: u64) {
        self.status = status;
        self.times.ended_at = Some(at);
        self.times.duration_ms = Some(duration_ms);
    }
}
