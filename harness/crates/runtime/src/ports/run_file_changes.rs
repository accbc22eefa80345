//! Changes that runs make to the files of their threads.

use async_trait::async_trait;
use serde_json::Value;

use deerflow_core::ids::RunId;

/// Reports the files that a run created, changed and deleted. The agent's tools record the files
/// before the first change; the runtime takes the report when the run ends, and journals it.
#[async_trait]
pub trait RunFileChanges: Send + Sync + std::fmt::Debug {
    /// Takes the report of a run as `{version, summary, files, limits}`. `None` without changes.
    async fn take(&self, run: &RunId) -> Option<Value>;

    /// Removes what is stored for a run whose changes are not reported.
    fn discard(&self, run: &RunId);
}

/// Reports nothing, for agents without files.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoFileChanges;

#[async_trait]
impl RunFileChanges for NoFileChanges {
    async fn take(&self, _run: &RunId) -> Option<Value> {
        None
    }

    fn discard(&self, _run: &RunId) {}
}
