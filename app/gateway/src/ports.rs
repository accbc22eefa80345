//! What the gateway asks of others besides the kernel's ports: the configuration as clients may see it, and a thread's files.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use harness::agents::aids::{Polisher, Suggester};
use harness::config::ExtensionsError;
use harness::documents::DocumentReader;
use harness::ids::ThreadId;
use harness::middlewares::summarization::Compactor;
use harness::models::{ModelFacts, Pricing};
use harness::runtime::runs::ThreadTtl;
use harness::sandbox::{Fault, FileHome, LeftThread, ThreadFiles};
use serde::Serialize;
use serde_json::{Map, Value};

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

/// Long-term memory as clients may see it: no key of a provider is among it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MemoryView {
    /// Whether anything is remembered.
    pub enabled: bool,
    /// `middleware` or `tool`.
    pub mode: &'static str,
    /// Whether agents read memories.
    pub injection_enabled: bool,
    /// Seconds a shutdown waits for pending memories.
    pub shutdown_flush_timeout_seconds: f64,
    /// The implementation.
    pub manager_class: String,
    /// Figures of the implementation.
    pub backend_config: Map<String, Value>,
}

/// What may be uploaded, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct UploadLimits {
    /// Files per request.
    pub max_files: u32,
    /// Bytes per file.
    pub max_file_size: u64,
    /// Bytes per request.
    pub max_total_size: u64,
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

/// A change of the configured MCP servers.
pub type McpChange = Box<dyn FnOnce(&mut Map<String, Value>) -> Result<(), McpPortError> + Send>;

/// Why the MCP servers could not be read or changed. The texts are for clients.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum McpPortError {
    /// The change was not allowed.
    #[error("{0}")]
    Refused(String),
    /// There is no such server.
    #[error("{0}")]
    Unknown(String),
    /// The file cannot be used.
    #[error("{0}")]
    Failed(String),
}

impl From<ExtensionsError> for McpPortError {
    fn from(error: ExtensionsError) -> Self {
        Self::Failed(error.to_string())
    }
}

/// The configured MCP servers, as they are written: with `$VARIABLE`s and secrets.
#[async_trait]
pub trait McpPort: Send + Sync + fmt::Debug {
    /// All of them, by name.
    async fn servers(&self) -> Result<Map<String, Value>, McpPortError>;
    /// Changes them, whole or not at all, and gives what is stored then.
    async fn change(&self, change: McpChange) -> Result<Map<String, Value>, McpPortError>;
    /// Ends all conversations with them and forgets what tools they have.
    async fn reset(&self);
    /// The programs that may be configured over HTTP.
    fn launchers(&self) -> Vec<String>;
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
    async fn note_removal(&self, user: &str, thread: &ThreadId, is_removed: bool) -> Result<(), ThreadFilesError>;
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

    async fn note_removal(&self, user: &str, thread: &ThreadId, is_removed: bool) -> Result<(), ThreadFilesError> {
        let files = FileHome::thread(self, user, thread);
        Ok(if is_removed { files.note_removal().await } else { files.forget_removal().await }?)
    }

    async fn sweep(&self) -> Result<Vec<LeftThread>, ThreadFilesError> {
        Ok(FileHome::sweep(self).await?)
    }

    async fn delete_left(&self, left: LeftThread) -> Result<(), ThreadFilesError> {
        FileHome::remove_left(self, left).await?;
        Ok(())
    }
}
