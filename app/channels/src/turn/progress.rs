//! RowProgress of an inbox row: what was done before a process ended.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Decided input of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Plan {
    /// The text of a pressed button, as a message.
    Text(String),
    /// Answers to open interrupts.
    Resume {
        /// Answers.
        answers: Value,
        /// Last message of the thread before the run.
        after: Option<String>,
    },
}

/// Durable progress.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct RowProgress {
    /// Received files that are stored in the thread: entries of the message's `files`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) files: Vec<Value>,
    /// Lines about files that were not received.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) notes: Vec<String>,
    /// `true` if the files were processed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) files_done: bool,
    /// State of the live message.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub(super) live: Value,
    /// Input of the run, if it does not follow from the message alone: what it answers may be gone
    /// when the message is handled again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) plan: Option<Plan>,
}

impl RowProgress {
    /// Reads stored progress; unknown content counts as none.
    pub(super) fn read(value: &Value) -> Self {
        serde_json::from_value(value.clone()).unwrap_or_default()
    }

    /// Returns the stored form.
    pub(super) fn value(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }
}
