//! Ports of the gateway in addition to the kernel's: the configuration as clients may see it, and
//! the files of threads.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use deerflow_domain::flows::FlowQuota;
use harness::agents::assist::{Polisher, Suggester};
use harness::documents::DocumentReader;
use harness::ids::ThreadId;
use harness::middlewares::summarization::Compactor;
use harness::models::{ModelFacts, Pricing};
use harness::runtime::runs::ThreadTtl;
use harness::sandbox::{FileFailure, FileHome, OrphanedThread, ThreadFiles};
use harness::uploads::UploadLimits;
use harness::user_memory::MemoryView;
use serde::Serialize;

/// Enabled features.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FeatureView {
    /// Custom agents over HTTP.
    pub agents_api: bool,
    /// A browser under the agent's control.
    pub browser_control: bool,
    /// Long-running MCP tasks.
    pub mcp_tasks: bool,
    /// Token counts in the interface.
    pub token_usage: bool,
}

/// Settings of follow-up suggestions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct SuggestionsView {
    /// `true` if suggestions are enabled.
    pub enabled: bool,
    /// Maximum number of suggestions, 1 to 5.
    pub max_suggestions: u8,
}

/// The configuration as clients may see it. It is read at each request, so that a reload takes
/// effect at once.
pub trait CatalogView: Send + Sync + fmt::Debug {
    /// Models in the order of the configuration.
    fn models(&self) -> Vec<ModelFacts>;
    /// Enabled features.
    fn features(&self) -> FeatureView;
    /// Settings of follow-up suggestions.
    fn suggestions(&self) -> SuggestionsView;
    /// Settings of user memory.
    fn memory(&self) -> MemoryView;
    /// Limits of uploads.
    fn uploads(&self) -> UploadLimits;
    /// Token prices of a model entry, if configured.
    fn pricing(&self, model: &str) -> Option<Pricing>;
    /// Converter of uploaded documents to Markdown; `None` if documents are not converted.
    fn documents(&self) -> Option<Arc<dyn DocumentReader>> {
        None
    }
    /// Limits of the flows of one user.
    fn flow_quota(&self) -> FlowQuota;
    /// Default time to live of new threads after their last change; `None` means no expiry.
    fn thread_ttl(&self) -> Option<ThreadTtl> {
        None
    }
}

/// Auxiliary model features of the current configuration; `None` if a feature is disabled.
pub trait AssistView: Send + Sync + fmt::Debug {
    /// Compactor of a thread's context for the entry `model`, or for the default model.
    fn compactor(&self, model: Option<&str>) -> Option<Compactor>;
    /// Compactor that measures a thread's share of the context window of the entry `model`, or of
    /// the default model. Also available if compaction is disabled.
    fn ruler(&self, model: Option<&str>) -> Compactor;
    /// Generator of follow-up questions.
    fn suggester(&self) -> Option<Suggester>;
    /// Rewriter of drafts.
    fn polisher(&self) -> Option<Polisher>;
}

/// Metrics of this process.
pub trait MetricsView: Send + Sync + fmt::Debug {
    /// Returns all metrics in Prometheus' text format.
    fn render(&self) -> String;
}

/// A thread's files could not be removed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("failed to remove the thread's files: {0}")]
pub struct ThreadFilesError(pub String);

/// Storage of the files of threads.
#[async_trait]
pub trait ThreadFilesPort: Send + Sync + fmt::Debug {
    /// Returns the files of one thread of one user, without disk access.
    fn thread(&self, user: &str, thread: &ThreadId) -> ThreadFiles;
    /// Removes all files of the thread and its sandbox. Idempotent.
    async fn delete_thread(&self, user: &str, thread: &ThreadId) -> Result<(), ThreadFilesError>;
    /// Records that the thread's row is about to be removed, so that a later sweep finds its files
    /// even if this process dies in between; with `is_removed == false`, clears that record.
    async fn note_removal(
        &self,
        user: &str,
        thread: &ThreadId,
        is_removed: bool,
    ) -> Result<(), ThreadFilesError>;
    /// Finishes interrupted removals, and returns the recorded threads: the caller
    /// [removes](Self::delete_orphaned) the files of those whose row no longer exists.
    async fn sweep(&self) -> Result<Vec<OrphanedThread>, ThreadFilesError>;
    /// Removes the remaining files of a thread that has no row.
    async fn delete_orphaned(&self, orphaned: OrphanedThread) -> Result<(), ThreadFilesError>;
}

impl From<FileFailure> for ThreadFilesError {
    fn from(fault: FileFailure) -> Self {
        Self(fault.to_string())
    }
}

/// Files without a sandbox.
#[async_trait]
impl ThreadFilesPort for FileHome {
    fn thread(&self, user: &str, thread: &ThreadId) -> ThreadFiles {
        FileHome::thread(self, user, thread)
    }

    async fn delete_thread(&self, user: &str, thread: &ThreadId) -> Result<(), ThreadFilesError> {
        FileHome::thread(self, user, thread).remove_all().await?;
        Ok(())
    }

    async fn note_removal(
        &self,
        user: &str,
        thread: &ThreadId,
        is_removed: bool,
    ) -> Result<(), ThreadFilesError> {
        let files = FileHome::thread(self, user, thread);
        Ok(if is_removed {
            files.note_removal().await
        } else {
            files.forget_removal().await
        }?)
    }

    async fn sweep(&self) -> Result<Vec<OrphanedThread>, ThreadFilesError> {
        Ok(FileHome::sweep(self).await?)
    }

    async fn delete_orphaned(&self, orphaned: OrphanedThread) -> Result<(), ThreadFilesError> {
        FileHome::remove_left(self, orphaned).await?;
        Ok(())
    }
}
