//! Port that reads runs.

use async_trait::async_trait;
use bytes::Bytes;
use chrono::{DateTime, Utc};

use super::run_create_store::StoredRunRequest;
use crate::definition::{RunRecord, RunStatus, StoreError};
use deerflow_core::actor_context::Owner;
use deerflow_core::ids::{RunId, ThreadId};

/// Filter of a list of runs.
#[derive(Debug, Clone)]
pub struct RunListQuery {
    /// Maximum number of runs; 100 by default.
    pub limit: usize,
    /// Number of runs to skip.
    pub offset: usize,
    /// Status as clients see it: `pending` includes `starting`.
    pub status: Option<RunStatus>,
}

impl Default for RunListQuery {
    fn default() -> Self {
        Self {
            limit: 100,
            offset: 0,
            status: None,
        }
    }
}

/// Reads runs. [`Owner`] selects the visible runs.
///
/// ```
/// use deerflow_core::actor_context::Owner;
/// use deerflow_core::ids::ThreadId;
/// use deerflow_runtime::in_memory::InMemoryStores;
/// use deerflow_runtime::runs::store::{RunListQuery, RunQueryStore};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let (store, thread) = (InMemoryStores::new(), ThreadId::parse("t1")?);
/// let newest = RunListQuery { limit: 1, ..RunListQuery::default() };
/// let runs = store.list(&thread, &newest, &Owner::User("ann".to_owned())).await?;
/// assert!(runs.is_empty());
/// # Ok(())
/// # }
/// ```
#[async_trait]
pub trait RunQueryStore: Send + Sync + std::fmt::Debug {
    /// Returns one run.
    async fn get(&self, run: &RunId, owner: &Owner) -> Result<Option<RunRecord>, StoreError>;

    /// Lists the runs of a thread, newest first.
    async fn list(
        &self,
        thread: &ThreadId,
        query: &RunListQuery,
        owner: &Owner,
    ) -> Result<Vec<RunRecord>, StoreError>;

    /// Returns an unfinished run of the thread: the one that occupies it, otherwise the first
    /// queued one.
    async fn active(&self, thread: &ThreadId) -> Result<Option<RunRecord>, StoreError>;

    /// Returns the final state stored for repeated requests, while the request key is retained.
    async fn kept_values(&self, run: &RunId) -> Result<Option<Bytes>, StoreError>;

    /// Returns the stored request of a run that is unfinished or
    /// [poisoned](super::RunEnd::is_poisoned). `None` for other runs, and by default, for a store
    /// whose poisoned runs cannot be retried.
    async fn stored_request(&self, run: &RunId) -> Result<Option<StoredRunRequest>, StoreError> {
        let _run = run;
        Ok(None)
    }

    /// Lists the owner's unfinished runs, oldest first, of one thread if given. Reads only the
    /// fields of [`UnfinishedRun`].
    async fn standing(
        &self,
        thread: Option<&ThreadId>,
        owner: &Owner,
    ) -> Result<Vec<UnfinishedRun>, StoreError>;
}

/// Summary of an unfinished run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnfinishedRun {
    /// Id of the run.
    pub run_id: RunId,
    /// Id of its thread.
    pub thread_id: ThreadId,
    /// Id of the user who owns the run.
    pub user_id: Option<String>,
    /// Status of the run.
    pub status: RunStatus,
    /// `true` if a cancel was requested.
    pub cancel_requested: bool,
    /// `true` if the run was started, released, and is queued to be resumed.
    pub was_released: bool,
    /// Time of acceptance or, for a delayed run, the earliest start.
    pub created_at: DateTime<Utc>,
}
