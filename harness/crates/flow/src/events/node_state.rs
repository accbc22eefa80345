//! State of one node of a run, as the events of its visits change it.

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::{Map, Value};

use super::recorded::{RecordedBody, RecordedEvent};
use crate::adapter::{FlowError, TurnWarning, Usage};
use crate::machine::add_usage;

/// Maximum number of visits that a state lists; older ones are left out.
const MAX_VISITS: usize = 100;
/// Maximum number of warnings of a visit.
const MAX_WARNINGS: usize = 50;

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
    /// Facts of the document.
    #[serde(flatten)]
    pub identity: NodeIdentity,
    /// Status.
    pub status: NodeStatus,
    /// Latest visit, from 1; 0 before the first.
    pub visit: u64,
    /// Attempts of the latest visit.
    pub attempts: u32,
    /// Input of the latest visit.
    #[serde(flatten)]
    pub input: NodeInputs,
    /// Output of the latest visit.
    #[serde(flatten)]
    pub output: NodeOutputs,
    /// Sums over all turns.
    pub usage: Usage,
    /// Warnings of the latest visit.
    pub warnings: Vec<TurnWarning>,
    /// Times of the latest visit.
    #[serde(flatten)]
    pub times: NodeTimes,
    /// Error of the latest visit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_trace: Option<FlowError>,
    /// Visits in order; the newest hundred.
    pub visits: Vec<VisitRecord>,
    /// Type of the last event.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub last_event: String,
}

/// Facts of a node that its document states.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeIdentity {
    /// Label for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Kind.
    pub node_kind: String,
    /// Agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
}

/// Input of a visit.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeInputs {
    /// Values of input ports.
    pub inputs: Map<String, Value>,
    /// Parts of the prompt with their sources.
    pub prompt_sources: Vec<Value>,
    /// Data edges that brought a value.
    pub input_traces: Vec<NodeTrace>,
}

/// Output of a visit.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeOutputs {
    /// Values of output ports, without `result`, which equals `out`.
    pub port_outputs: Map<String, Value>,
    /// Final text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub final_text: Option<String>,
    /// Structured output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub structured_output: Option<Value>,
    /// Reasoning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_text: Option<String>,
    /// Tool calls.
    pub tool_calls: Vec<Value>,
    /// Artifacts.
    pub artifacts: Vec<Value>,
    /// Data edges that carried a value on.
    pub output_traces: Vec<NodeTrace>,
}

/// A value that a data edge carried.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeTrace {
    /// Id, made of the edge and the visit of the target.
    pub trace_id: String,
    /// Node that the edge leaves.
    pub source_node_id: String,
    /// Output port.
    pub source_port_id: String,
    /// Node that the edge enters.
    pub target_node_id: String,
    /// Input port.
    pub target_port_id: String,
    /// Value.
    pub value: Value,
    /// Start of the target's visit.
    pub timestamp: Option<DateTime<Utc>>,
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

/// One visit in the list of a node's visits.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct VisitRecord {
    /// Number of the visit.
    pub visit: u64,
    /// Status at its end, or of the visit at work.
    pub status: NodeStatus,
    /// Attempts.
    pub attempts: u32,
    /// Handle or action taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    /// Tokens and cost.
    pub usage: Usage,
    /// Times.
    #[serde(flatten)]
    pub times: NodeTimes,
    /// Code of the error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_code: Option<String>,
}

impl NodeState {
    /// Ends a visit that the run left open.
    pub(super) fn leave(&mut self, status: NodeStatus) {
        self.status = status;
        if let Some(visit) = self.visits.last_mut() {
            visit.status = status;
        }
    }

    pub(super) fn apply(&mut self, event_type: &str, event: RecordedEvent) {
        event_type.clone_into(&mut self.last_event);
        let at = event.timestamp;
        match event.body {
            RecordedBody::NodeStarted {
                kind,
                visit,
                inputs,
            } => self.start(at, kind, visit, inputs),
            RecordedBody::NodeCompleted {
                action,
                ports,
                duration_ms,
            } => {
                let skipped = action.as_deref() == Some("skipped");
                let status = if skipped {
                    NodeStatus::Skipped
                } else {
                    NodeStatus::Completed
                };
                self.output.final_text =
                    ports.get("out").and_then(Value::as_str).map(str::to_owned);
                self.output.port_outputs = ports;
                if let Some(visit) = self.visits.last_mut() {
                    visit.action = action;
                }
                self.finish(status, at, duration_ms);
            }
            RecordedBody::NodeFailed { error, duration_ms } => {
                if let Some(visit) = self.visits.last_mut() {
                    visit.error_code = Some(error.code.clone());
                }
                self.error_trace = Some(error);
                self.finish(NodeStatus::Failed, at, duration_ms);
            }
            RecordedBody::NodeRetry { attempt } => {
                self.attempts = attempt;
                if let Some(visit) = self.visits.last_mut() {
                    visit.attempts = attempt;
                }
                self.output = NodeOutputs::default();
            }
            RecordedBody::AgentSelected { prompt_sources } => {
                self.identity.agent_id = event.agent_id;
                self.input.prompt_sources = prompt_sources;
            }
            RecordedBody::TurnCompleted {
                usage,
                structured_output,
                reasoning_text,
                tool_calls,
                artifacts,
            } => {
                self.spend(&usage);
                self.output = NodeOutputs {
                    structured_output,
                    reasoning_text,
                    tool_calls,
                    artifacts,
                    ..NodeOutputs::default()
                };
            }
            RecordedBody::TurnFailed { usage } => self.spend(&usage),
            RecordedBody::NodeWarning { code, message } => {
                if self.warnings.len() < MAX_WARNINGS {
                    self.warnings.push(TurnWarning { code, message });
                }
            }
            RecordedBody::RunStarted { .. }
            | RecordedBody::RunResumed { .. }
            | RecordedBody::RunCompleted {}
            | RecordedBody::RunFailed {}
            | RecordedBody::RunCancelled {}
            | RecordedBody::RunInterrupted { .. } => {}
        }
    }

    fn start(&mut self, at: DateTime<Utc>, kind: String, visit: u64, inputs: Map<String, Value>) {
        let times = NodeTimes {
            started_at: Some(at),
            ..NodeTimes::default()
        };
        let mut visits = std::mem::take(&mut self.visits);
        // A visit that another process or run had begun is repeated under its number.
        visits.retain(|former| former.visit != visit);
        if visits.len() == MAX_VISITS {
            visits.remove(0);
        }
        visits.push(VisitRecord {
            visit,
            status: NodeStatus::Running,
            attempts: 1,
            action: None,
            usage: Usage::default(),
            times,
            error_code: None,
        });
        *self = Self {
            identity: NodeIdentity {
                node_kind: kind,
                ..std::mem::take(&mut self.identity)
            },
            status: NodeStatus::Running,
            visit,
            attempts: 1,
            input: NodeInputs {
                inputs,
                ..NodeInputs::default()
            },
            usage: std::mem::take(&mut self.usage),
            times,
            visits,
            last_event: std::mem::take(&mut self.last_event),
            ..Self::default()
        };
    }

    fn spend(&mut self, usage: &Usage) {
        add_usage(&mut self.usage, usage);
        if let Some(visit) = self.visits.last_mut() {
            add_usage(&mut visit.usage, usage);
        }
    }

    fn finish(&mut self, status: NodeStatus, at: DateTime<Utc>, duration_ms: u64) {
        self.status = status;
        self.times.ended_at = Some(at);
        self.times.duration_ms = Some(duration_ms);
        if let Some(visit) = self.visits.last_mut() {
            visit.status = status;
            visit.times = self.times;
        }
    }
}
