//! Events as they are read from storage. Texts may have been cut; unknown events are ignored.

use chrono::{DateTime, Utc};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::adapter::{FlowError, Usage};

/// A stored event with the fields from which the state of nodes follows.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RecordedEvent {
    pub(super) node_id: Option<String>,
    pub(super) agent_id: Option<String>,
    pub(super) timestamp: DateTime<Utc>,
    #[serde(flatten)]
    pub(super) body: RecordedBody,
}

/// Content of a stored event.
#[derive(Debug, Deserialize)]
#[serde(
    tag = "eventType",
    content = "payload",
    rename_all = "snake_case",
    rename_all_fields = "camelCase"
)]
pub(super) enum RecordedBody {
    RunStarted {
        content_hash: Option<String>,
    },
    RunResumed {
        content_hash: Option<String>,
    },
    RunCompleted {},
    RunFailed {},
    RunCancelled {},
    RunInterrupted {
        #[serde(default)]
        interrupts: Vec<Value>,
    },
    NodeStarted {
        kind: String,
        visit: u64,
        #[serde(default)]
        inputs: Map<String, Value>,
    },
    NodeCompleted {
        action: Option<String>,
        #[serde(default)]
        ports: Map<String, Value>,
        duration_ms: u64,
    },
    NodeFailed {
        error: FlowError,
        duration_ms: u64,
    },
    NodeRetry {
        attempt: u32,
    },
    AgentSelected {
        #[serde(default)]
        prompt_sources: Vec<Value>,
    },
    TurnCompleted {
        #[serde(default)]
        usage: Usage,
        structured_output: Option<Value>,
        reasoning_text: Option<String>,
        #[serde(default)]
        tool_calls: Vec<Value>,
        #[serde(default)]
        artifacts: Vec<Value>,
    },
    TurnFailed {
        #[serde(default)]
        usage: Usage,
    },
    NodeWarning {
        code: String,
        message: String,
    },
}
