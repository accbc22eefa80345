//! What the gateway asks of others besides the kernel's ports: the configuration as clients may see it, and a thread's files.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use harness::agents::aids::{Polisher, Suggester};
use harness::documents::DocumentReader;
use harness::ids::ThreadId;
use harness::memory::MemoryView;
use harness::middlewares::summarization::Compactor;
use harness::models::{ModelFacts, Pricing};
use harness::runtime::runs::ThreadTtl;
use harness::sandbox::{Fault, FileHome, LeftThread, ThreadFiles};
use harness::uploads::UploadLimits;
use serde::Serialize;

/// Which parts are switched on.
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

/// Whether follow-up questions are suggested.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct SuggestionsView {
    /// Switched on.
    pub enabled: bool,
    /// At most so many, 1 to 5.
    pub max_suggestions: u8,
}

/// The configuration as clients may see it, asked for at each request so that a reload shows at once.
pub trait CatalogView: Send + Sync + fmt::Debug {
    /// The models, in the order of the configuration.
    fn models(&self) -> Vec<ModelFacts>;
    /// What is switched on.
    fn features(&self) -> FeatureView;
    /// Follow-up questions.
    fn suggestions(&self) -> SuggestionsView;
    /// Long-term memory.
    fn memory(&self) -> MemoryView;
    /// Upload limits.
    fn uploads(&self) -> UploadLimits;
    /// What the tokens of a model entry cost, where the configuration says so.
    fn pricing(&self, model: &str) -> Option<Pricing>;
    /// What turns uploaded documents into Markdown; none where they stay as they are.
    fn documents(&self) -> Option<Arc<dyn DocumentReader>> {
        None
    }
    /// How long new threads stay after their last change, where nobody says; for ever when absent.
    fn thread_ttl(&self) -> Option<ThreadTtl> {
        None
    }
}

/// What models do beside the conversation, by the configuration in force; `None` where it is switched off.
pub trait AidsView: Send + Sync + fmt::Debug {
    /// Shortens what the entry `model` sees of a thread, or the default one.
    fn compactor(&self, model: Option<&str>) -> Option<Compactor>;
    /// What a thread takes of the window of the entry `model`, or of the default one; also where nothing is shortened.
    fn ruler(&self, model: Option<&str>) -> Compactor;
    /// Offers follow-up questions.
    fn suggester(&self) -> Option<Suggester>;
    /// Rewrites drafts.
    fn polisher(&self) -> Option<Polisher>;
}

/// The figures of this process.
pub trait MetricsView: Send + Sync + fmt::Debug {
    /// All of them in Prometheus' text format.
    fn render(&self) -> String;
}

/// Why a thread's files could not be removed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the thread's files could not be removed: {0}")]
pub struct ThreadFilesError(pub String);

/// The files of a thread, wherever they are kept.
#[async_trait]
pub trait ThreadFilesPort: Send + Sync + fmt::Debug {
    /// The files of one thread of one user. Touches no disk.
    fn thread(&self, user: &str, thread: &ThreadId) -> ThreadFiles;
    /// Removes everything the thread has, sandbox included. Idempotent.
    async fn delete_thread(&self, user: &str, thread: &ThreadId) -> Result<(), ThreadFilesError>;
    /// Notes that the thread's row is about to be removed, so that its files are found even if this process dies in between; or that
    /// it stays after all.
    async fn note_removal(
        &self,
        user: &str,
        thread: &ThreadId,
        is_removed: bool,
    ) -> Result<(), ThreadFilesError>;
    /// Removes what removals left that broke off, and gives the threads that were noted: what those have is theirs to
    /// [remove](Self::delete_left) whose row is gone.
    async fn sweep(&self) -> Result<Vec<LeftThread>, ThreadFilesError>;
    /// Removes what such a thread has left.
    async fn delete_left(&self, left: LeftThread) -> Result<(), ThreadFilesError>;
}

impl From<Fault> for ThreadFilesError {
    fn from(fault: Fault) -> Self {
        Self(fault.to_string())
    }
}

/// Files alone, with no sandbox to end.
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

    async fn sweep(&self) -> Result<Vec<LeftThread>, ThreadFilesError> {
        Ok(FileHome::sweep(self).await?)
    }

    async fn delete_left(&self, left: LeftThread) -> Result<(), ThreadFilesError> {
        FileHome::remove_left(self, left).await?;
        Ok(())
    }
}
