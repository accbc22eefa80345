//! What the gateway asks of others: runs, the current configuration as clients may see it, and a thread's files.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::BoxStream;
use harness::ids::{CheckpointId, RunId, ThreadId};
use harness::runtime::agent::UnknownAssistant;
use harness::runtime::runs::store::{AdmitError, RunListQuery, StoreError};
use harness::runtime::runs::{CancelAction, RunRecord, RunSpec, RunStatus};
use harness::runtime::stream_bridge::{BridgeError, ResumeFrom, ResumeResult, StreamItem};
use serde::Serialize;

/// The runs of this server.
pub type Runs = dyn RunsPort;

/// A viewer's way to a run.
pub struct RunStream {
    /// The run.
    pub run_id: RunId,
    /// Its thread.
    pub thread_id: ThreadId,
    /// What the stream begins with.
    pub resume: ResumeResult,
    /// Replay, then live.
    pub items: BoxStream<'static, StreamItem>,
}

impl fmt::Debug for RunStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunStream").field("run_id", &self.run_id).field("resume", &self.resume).finish_non_exhaustive()
    }
}

/// What somebody who waited for a run gets.
#[derive(Debug, Clone, PartialEq)]
pub enum WaitOutcome {
    /// JSON of the last state, with `__interrupt__` when questions are open.
    Values(Bytes),
    /// The run failed.
    Failed {
        /// The error's class.
        name: String,
        /// Why.
        message: String,
        /// JSON of the last state, if there is one.
        values: Option<Bytes>,
    },
}

/// Why a call about runs failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// Not admitted.
    #[error(transparent)]
    Admit(#[from] AdmitError),
    /// No agent for it.
    #[error(transparent)]
    Assistant(#[from] UnknownAssistant),
    /// No such run.
    #[error("run {0} not found")]
    NotFound(RunId),
    /// The run is over.
    #[error("run {run_id} is not cancellable (status: {status})")]
    NotCancellable {
        /// The run.
        run_id: RunId,
        /// Where it is in its life.
        status: RunStatus,
    },
    /// No such checkpoint.
    #[error("checkpoint {0} not found")]
    CheckpointNotFound(CheckpointId),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The bridge failed.
    #[error(transparent)]
    Bridge(#[from] BridgeError),
}

/// The verbs of runs.
#[async_trait]
pub trait RunsPort: Send + Sync + fmt::Debug {
    /// Admits a run and lets it go.
    async fn create_background(&self, spec: RunSpec) -> Result<RunRecord, RunError>;
    /// Admits a run and follows it.
    async fn create_and_stream(&self, spec: RunSpec, heartbeat: Duration) -> Result<(RunRecord, RunStream), RunError>;
    /// Admits a run and waits for its end.
    async fn create_and_wait(&self, spec: RunSpec) -> Result<(RunRecord, WaitOutcome), RunError>;
    /// Follows a run.
    async fn join_stream(
        &self,
        thread: Option<&ThreadId>,
        run: &RunId,
        from: ResumeFrom,
        heartbeat: Duration,
    ) -> Result<RunStream, RunError>;
    /// Waits for a run's end.
    async fn join_wait(&self, thread: Option<&ThreadId>, run: &RunId) -> Result<WaitOutcome, RunError>;
    /// Cancels a run.
    async fn cancel(&self, thread: &ThreadId, run: &RunId, action: CancelAction, wait: bool) -> Result<RunRecord, RunError>;
    /// One run of a thread.
    async fn get_run(&self, thread: &ThreadId, run: &RunId) -> Result<Option<RunRecord>, RunError>;
    /// A thread's runs, newest first.
    async fn list_runs(&self, thread: &ThreadId, query: RunListQuery) -> Result<Vec<RunRecord>, RunError>;
    /// Removes a finished run.
    async fn delete_run(&self, thread: &ThreadId, run: &RunId) -> Result<(), RunError>;
}

/// A model as clients may see it: never a key, never an address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ModelView {
    /// The entry's name: what `context.model_name` uses.
    pub name: String,
    /// The provider's id.
    pub model: String,
    /// For people.
    pub display_name: Option<String>,
    /// For people.
    pub description: Option<String>,
    /// Whether it can think before it answers.
    pub supports_thinking: bool,
    /// Whether it takes a reasoning effort.
    pub supports_reasoning_effort: bool,
}

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
    fn models(&self) -> Vec<ModelView>;
    /// What is switched on.
    fn features(&self) -> FeatureView;
    /// Follow-up questions.
    fn suggestions(&self) -> SuggestionsView;
    /// Upload limits.
    fn uploads(&self) -> UploadLimits;
}

/// Why a thread's files could not be removed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the thread's files could not be removed: {0}")]
pub struct ThreadFilesError(pub String);

/// The files of a thread, wherever they are kept.
#[async_trait]
pub trait ThreadFilesPort: Send + Sync + fmt::Debug {
    /// Removes everything the thread has, sandbox included. Idempotent.
    async fn delete_thread(&self, user: &str, thread: &ThreadId) -> Result<(), ThreadFilesError>;
}
