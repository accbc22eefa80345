//! What the gateway asks of others besides the kernel's ports: the configuration as clients may see it, and a thread's files.

use std::fmt;

use async_trait::async_trait;
use harness::agents::aids::{Polisher, Suggester};
use harness::ids::ThreadId;
use harness::middlewares::summarization::Compactor;
use harness::models::ModelFacts;
use harness::runtime::runs::ThreadTtl;
use harness::sandbox::{FileHome, ThreadFiles};
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
    /// How long new threads stay after their last change, where nobody says; for ever when absent.
    fn thread_ttl(&self) -> Option<ThreadTtl> {
        None
    }
}

/// What models do beside the conversation, by the configuration in force; `None` where it is switched off.
pub trait AidsView: Send + Sync + fmt::Debug {
    /// Shortens what the entry `model` sees of a thread, or the default one.
    fn compactor(&self, model: Option<&str>) -> Option<Compactor>;
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
}

/// Files alone, with no sandbox to end.
#[async_trait]
impl ThreadFilesPort for FileHome {
    fn thread(&self, user: &str, thread: &ThreadId) -> ThreadFiles {
        FileHome::thread(self, user, thread)
    }

    async fn delete_thread(&self, user: &str, thread: &ThreadId) -> Result<(), ThreadFilesError> {
        let removed = FileHome::thread(self, user, thread).remove_all().await;
        removed.map(|_| ()).map_err(|fault| ThreadFilesError(fault.to_string()))
    }
}
