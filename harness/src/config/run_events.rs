//! `run_events`: the journal of what runs did.

use serde::Deserialize;

/// The journal of runs.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct RunEventsConfig {
    /// Where the journal is kept.
    pub backend: RunEventsBackend,
    /// Longest content of one trace event, in characters.
    pub max_trace_content: usize,
    /// Add up token usage per run.
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

/// Where the journal is kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum RunEventsBackend {
    /// Nothing outlives the process.
    Memory,
    /// In the database.
    #[default]
    Db,
    /// In files, one line per event.
    Jsonl,
}
