//! `run_events`: journal of the events of runs.

use serde::Deserialize;

/// Journal of runs.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct RunEventsConfig {
    /// Storage of the journal.
    pub backend: RunEventsBackend,
    /// Maximum content of one trace event, in characters.
    pub max_trace_content: usize,
    /// Has no effect: token usage is always tracked.
    pub track_token_usage: bool,
}

impl Default for RunEventsConfig {
    fn default() -> Self {
        Self {
            backend: RunEventsBackend::Db,
            max_trace_content: 10_240,
            track_token_usage: true,
        }
    }
}

/// Storage of the journal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum RunEventsBackend {
    /// In memory; data is lost when the process ends.
    Memory,
    /// Database.
    #[default]
    Db,
    /// Files, one line per event.
    Jsonl,
}
