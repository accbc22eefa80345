//! Branches of threads: new threads that continue at an earlier state of another.

use async_trait::async_trait;
use deerflow_core::ids::{CheckpointId, RunId, ThreadId};
use deerflow_runtime::runs::store::{NewRunEvent, StoreError};
use serde_json::{Map, Value};

use crate::threads::{NewThread, ThreadRecord};

/// Channels whose values belong to the original thread and are removed from the branch's newest
/// state: the sandbox of a thread is another one in its branch.
pub const CHANNELS_OF_ORIGINAL: [&str; 1] = ["sandbox"];

/// Returns the id of the run in a branch that stands for the `number`th run of the original. It
/// exists in the journal and in feedback only.
pub fn copied_run(branch: &ThreadId, number: usize) -> Option<RunId> {
    RunId::parse(format!("{}{number}", copied_run_prefix(branch))).ok()
}

/// Reports whether the id is that of a run copied into this branch.
pub fn is_copied_run(branch: &ThreadId, run: &RunId) -> bool {
    run.as_str().starts_with(&copied_run_prefix(branch))
}

fn copied_run_prefix(branch: &ThreadId) -> String {
    format!("branch-seed-{branch}-")
}

/// Branch to create.
#[derive(Debug, Clone)]
pub struct NewBranch {
    /// Row of the new thread; its user owns the original too.
    pub thread: NewThread,
    /// Title of the new thread and of its newest state.
    pub title: Option<String>,
    /// Original thread.
    pub original: ThreadId,
    /// State of the original at which the branch starts.
    pub checkpoint: CheckpointId,
    /// Metadata added to this state.
    pub metadata: Map<String, Value>,
    /// Journal of the branch, in order.
    pub events: Vec<NewRunEvent>,
}

/// Creates branches.
#[async_trait]
pub trait BranchStore: Send + Sync + std::fmt::Debug {
    /// Creates the thread with its journal, a copy of the checkpoint and of its ancestors, and the
    /// log that they need. All or nothing, except that a journal outside of the database may remain
    /// after a crash; it is of no thread. The newest state of the branch has no pending tasks.
    ///
    /// Returns `None` if the original or the checkpoint no longer exists.
    async fn branch(&self, branch: NewBranch) -> Result<Option<ThreadRecord>, StoreError>;
}
