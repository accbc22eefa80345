//! Envelope and payloads of events.

use std::fmt;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use deerflow_core::clock::iso;
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Map, Value};

use super::payload;
use crate::adapter::{FlowError, PromptSegment, TurnDelta, TurnMode, TurnStatus, Usage};

/// Version of the envelope.
pub const EVENT_SCHEMA_VERSION: &str = "1.0";

/// An event of a run. Nodes of a sub-flow have ids of the form `outer/inner`.
#[derive(Debug, Clone, PartialEq)]
pub struct FlowEvent {
    /// Id.
    pub event_id: String,
    /// Run.
    pub run_id: Arc<str>,
    /// Node.
    pub node_id: Option<String>,
    /// Agent.
    pub agent_id: Option<String>,
    /// Attempt of a turn.
    pub invocation_id: Option<String>,
    /// Time.
    pub timestamp: DateTime<Utc>,
    /// Content.
    pub body: EventBody,
}

/// Content of an event. A run sends one of `RunCompleted`, `RunFailed`, `RunCancelled` and
/// `RunInterrupted`, as its last event. Serializes as its payload, without its type.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
#[serde(untagged, rename_all_fields = "camelCase")]
pub enum EventBody {
    /// The run began.
    RunStarted {
        /// Names of the input's fields.
        input: Vec<String>,
        /// Hash of the flow's content.
        content_hash: String,
    },
    /// The run continues after an interrupt or an error.
    RunResumed {
        /// Hash of the flow's content.
        content_hash: String,
    },
    /// The run completed.
    RunCompleted {
        /// Result.
        result: Option<Value>,
        /// Supersteps.
        steps: u64,
    },
    /// The run failed.
    #[serde(serialize_with = "payload::error")]
    RunFailed(FlowError),
    /// The run was cancelled.
    #[serde(serialize_with = "payload::empty")]
    RunCancelled,
    /// The run stopped at questions, or at a breakpoint if there are none.
    #[serde(serialize_with = "payload::interrupts")]
    RunInterrupted(Vec<Value>),
    /// A visit began.
    NodeStarted {
        /// Kind of the node.
        kind: String,
        /// Number of the visit.
        visit: u64,
        /// Values of the input ports.
        inputs: Map<String, Value>,
    },
    /// A visit completed.
    NodeCompleted {
        /// Number of the visit.
        visit: u64,
        /// Handle or action taken.
        action: Option<String>,
        /// Values of the output ports, without `result`, which equals `out`.
        ports: Map<String, Value>,
        /// Duration.
        duration_ms: u64,
    },
    /// A visit failed. With `handled` the run goes on.
    NodeFailed {
        /// Number of the visit.
        visit: u64,
        /// Error.
        error: FlowError,
        /// `true` if the node handles the failure.
        handled: bool,
        /// Duration.
        duration_ms: u64,
    },
    /// The visit is tried again.
    NodeRetry {
        /// Coming attempt, from 2.
        attempt: u32,
        /// Delay before it.
        delay_ms: u64,
    },
    /// An agent takes its turn.
    AgentSelected {
        /// Kind of the adapter.
        adapter_kind: String,
        /// Mode.
        turn_mode: TurnMode,
        /// `true` if the session had earlier turns.
        session_reused: bool,
        /// Parts of the prompt.
        #[serde(rename = "promptSources", serialize_with = "payload::segments")]
        prompt: Arc<[PromptSegment]>,
    },
    /// Output of a turn.
    #[serde(serialize_with = "payload::delta")]
    Delta(TurnDelta),
    /// A turn completed.
    #[serde(serialize_with = "payload::completed")]
    TurnCompleted {
        /// Tokens and cost.
        usage: Usage,
        /// Structured output.
        structured: Option<Value>,
        /// Reasoning of the model.
        reasoning: Option<String>,
        /// Tool calls that the agent reports.
        tool_calls: Vec<Value>,
        /// Artifacts that the agent reports.
        artifacts: Vec<Value>,
        /// Duration.
        duration_ms: u64,
    },
    /// A turn did not complete.
    TurnFailed {
        /// Status.
        status: TurnStatus,
        /// Tokens and cost.
        usage: Usage,
        /// Error.
        error: FlowError,
        /// Duration.
        duration_ms: u64,
    },
    /// Control passed along an edge.
    EdgeTaken {
        /// Node that it leaves.
        from: String,
        /// Node that it enters.
        to: String,
        /// Handle.
        handle: Option<String>,
    },
    /// A proposal of delegation was decided.
    DelegationResolved(Value),
    /// A warning of a node.
    Warning {
        /// Code.
        code: String,
        /// Message.
        message: String,
    },
}

/// Receives events. Never waits.
pub trait FlowEventSink: Send + Sync + fmt::Debug {
    /// Returns `false` if no events are received, so that none are made.
    fn is_active(&self) -> bool {
        true
    }

    /// Receives an event.
    fn emit(&self, event: FlowEvent);
}

impl FlowEvent {
    /// Returns the envelope for clients.
    pub fn to_value(&self) -> Value {
        serde_json::to_value(self).unwrap_or(Value::Null)
    }
}

impl Serialize for FlowEvent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut envelope = serializer.serialize_map(None)?;
        envelope.serialize_entry("eventId", &self.event_id)?;
        envelope.serialize_entry("eventType", self.body.event_type())?;
        envelope.serialize_entry("schemaVersion", EVENT_SCHEMA_VERSION)?;
        envelope.serialize_entry("runId", &*self.run_id)?;
        envelope.serialize_entry("timestamp", &iso(self.timestamp))?;
        envelope.serialize_entry("payload", &self.body)?;
        let ids = [
            ("nodeId", &self.node_id),
            ("agentId", &self.agent_id),
            ("invocationId", &self.invocation_id),
        ];
        for (key, id) in ids {
            if let Some(id) = id {
                envelope.serialize_entry(key, id)?;
            }
        }
        envelope.end()
    }
}

impl EventBody {
    /// Returns the name on the wire.
    pub fn event_type(&self) -> &'static str {
        match self {
            Self::RunStarted { .. } => "run_started",
            Self::RunResumed { .. } => "run_resumed",
            Self::RunCompleted { .. } => "run_completed",
            Self::RunFailed(_) => "run_failed",
            Self::RunCancelled => "run_cancelled",
            Self::RunInterrupted(_) => "run_interrupted",
            Self::NodeStarted { .. } => "node_started",
            Self::NodeCompleted { .. } => "node_completed",
            Self::NodeFailed { .. } => "node_failed",
            Self::NodeRetry { .. } => "node_retry",
            Self::AgentSelected { .. } => "agent_selected",
            Self::Delta(_) => "agent_stream_delta",
            Self::TurnCompleted { .. } => "turn_completed",
            Self::TurnFailed { .. } => "turn_failed",
            Self::EdgeTaken { .. } => "edge_taken",
            Self::DelegationResolved(_) => "subagent_switch_resolved",
            Self::Warning { .. } => "node_warning",
        }
    }

    /// Reports whether it is an event of the run or of a node, not of a turn or an edge.
    pub fn is_lifecycle(&self) -> bool {
        let name = self.event_type();
        name.starts_with("run_") || name.starts_with("node_")
    }

    /// Returns the payload.
    pub fn payload(&self) -> Value {
        serde_json::to_value(self).unwrap_or(Value::Null)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_of_runs_and_nodes_are_lifecycle_events() {
        let resumed = EventBody::RunResumed {
            content_hash: String::new(),
        };
        assert!(resumed.is_lifecycle());
        let retry = EventBody::NodeRetry {
            attempt: 2,
            delay_ms: 1,
        };
        assert!(retry.is_lifecycle());
        let delta = EventBody::Delta(TurnDelta::default());
        assert!(!delta.is_lifecycle());
    }
}
