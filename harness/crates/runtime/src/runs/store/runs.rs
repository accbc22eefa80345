//! Ports to create, commit, read and delete runs.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::calls::CallEntry;
use super::error::{AdmitError, CommitError};
use super::events::NewRunEvent;
use super::store_error::StoreError;
use super::webhooks::WebhookCall;
use crate::checkpoint::CheckpointWrite;
use crate::runs::{
    CancelAction, RunCompletionData, RunRecord, RunRequest, RunStatus, ThreadStatus,
};
use deerflow_core::actor_context::{ActorContext, Owner};
use deerflow_core::ids::{NodeId, RunId, ThreadId};

/// Run to be admitted.
#[derive(Debug, Clone)]
pub struct NewRun {
    /// Id of the run.
    pub run_id: RunId,
    /// Id of its thread.
    pub thread_id: ThreadId,
    /// Id of the user who owns the run.
    pub user_id: Option<String>,
    /// Stored request from which any process can start the run. Retained until the run ends.
    pub recipe: Arc<StoredRunRequest>,
    /// Owner of the run, if it starts at once.
    pub owner: NodeId,
    /// Maximum number of queued runs on the thread.
    pub most_waiting: usize,
    /// Time of acceptance or, for a delayed run, the earliest start.
    pub created_at: DateTime<Utc>,
    /// Current time.
    pub at: DateTime<Utc>,
}

impl NewRun {
    /// Returns the request of the run. Its echo contains the input, so an accepted input is never
    /// lost.
    pub fn request(&self) -> &RunRequest {
        &self.recipe.spec
    }
}

/// Stored request from which any process can start a queued or orphaned run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct StoredRunRequest {
    /// Request, without the fields that the run's record has.
    pub spec: RunRequest,
    /// Actor who made the request.
    pub actor: ActorContext,
}

/// A run that was admitted.
#[derive(Debug, Clone, PartialEq)]
pub struct Admitted {
    /// The run: `starting` if it may start at once, `pending` if it is queued.
    pub run: RunRecord,
    /// Runs of the thread of which this admission requested the cancel.
    pub displaced: Vec<RunRecord>,
}

/// Queued or orphaned run that a process has claimed.
#[derive(Debug, Clone)]
pub struct Claimed {
    /// The run, `starting`, with the attempt of its new owner.
    pub run: RunRecord,
    /// Number of its owners that died.
    pub losses: u32,
    /// Time since the first attempt started, by the store's clock; zero if none started.
    pub worked: Duration,
    /// Request to start the run from, or the reason why it cannot be read.
    pub recipe: Result<StoredRunRequest, String>,
}

/// Admits runs, and assigns queued and orphaned runs to processes.
///
/// Runs of a thread start in the order of their admission, one at a time, even if their
/// `created_at` comes from different clocks. A delayed run does not block later runs until its
/// start time. A released run blocks its thread: until it has resumed, or has ended after a cancel,
/// no other run starts there. Threads are independent of each other. A run that cannot be read is
/// ended as failed by the first call that reads it, so that it does not block the queue.
///
/// ```
/// use chrono::{DateTime, Utc};
/// use deerflow_core::ids::NodeId;
/// use deerflow_runtime::runs::store::{Claimed, RunCreateStore, StoreError};
///
/// /// Claims an orphaned run, otherwise a queued one.
/// async fn next_run(
///     store: &dyn RunCreateStore,
///     node: &NodeId,
///     now: DateTime<Utc>,
/// ) -> Result<Option<Claimed>, StoreError> {
///     match store.take_over(node, now).await? {
///         Some(orphaned) => Ok(Some(orphaned)),
///         None => store.claim(node, now).await,
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let store = deerflow_runtime::in_memory::InMemoryStores::new();
/// assert!(next_run(&store, &NodeId::parse("n1")?, DateTime::UNIX_EPOCH).await?.is_none());
/// # Ok(())
/// # }
/// ```
#[async_trait]
pub trait RunCreateStore: Send + Sync + std::fmt::Debug {
    /// Applies [`decide_admission`](crate::runs::decide_admission) to the run. One
    /// transaction writes the run, its thread (created if requested; it must belong to the user),
    /// and the thread's status `busy`. Of two concurrent calls for one thread, at most one starts
    /// its run. A request with a used key creates no run; this is checked first. The key of a new
    /// request is stored with its run.
    async fn admit(&self, run: NewRun) -> Result<Admitted, AdmitError>;

    /// Claims a queued run without a cancel request that may start at `now` and has a free thread.
    /// Of the runs of a thread, the released one is first, then the oldest one. The run becomes
    /// `starting` with `updated_at` set to `now`, and no other call returns it.
    async fn claim(&self, node: &NodeId, now: DateTime<Utc>)
    -> Result<Option<Claimed>, StoreError>;

    /// Claims the oldest orphaned run: its owner has no valid lease. Runs with a cancel request are
    /// included. The attempt increases by one, so that writes of the former owner are rejected;
    /// otherwise as with [`claim`](Self::claim).
    async fn take_over(
        &self,
        node: &NodeId,
        now: DateTime<Utc>,
    ) -> Result<Option<Claimed>, StoreError>;

    /// Returns the earliest start of the delayed runs.
    async fn next_due(&self, now: DateTime<Utc>) -> Result<Option<DateTime<Utc>>, StoreError>;

    /// Records a cancel request; the action of a later request is ignored. Returns the updated run,
    /// or `None` if it does not exist.
    async fn request_cancel(
        &self,
        run: &RunId,
        action: CancelAction,
        at: DateTime<Utc>,
    ) -> Result<Option<RunRecord>, StoreError>;
}

/// End of a run, written once.
#[derive(Debug, Clone, PartialEq)]
pub struct RunEnd {
    /// Terminal status.
    pub status: RunStatus,
    /// Error text of a failed run.
    pub error: Option<String>,
    /// Class of that error.
    pub error_name: Option<String>,
    /// Reason of an early stop.
    pub stop_reason: Option<String>,
    /// Usage and message totals.
    pub completion: RunCompletionData,
    /// Status of the thread if no other run is queued on it. Ignored if `discard_checkpoints` is
    /// set.
    pub thread_status: ThreadStatus,
    /// Title of the thread, if the state has one.
    pub title: Option<String>,
    /// Webhook call, stored in the outbox in the same transaction.
    pub webhook: Option<WebhookCall>,
    /// Final state as JSON, for a repeated request after the thread was deleted. Stored with the
    /// request key of the run.
    pub kept_values: Option<Bytes>,
    /// `true` to delete the run's checkpoints, as after a rollback. The thread's status then
    /// follows from the newest remaining checkpoint.
    pub discard_checkpoints: bool,
    /// `true` to delete the run's ledger entries, if it may have any.
    pub forget_calls: bool,
}

/// Changes of a run that become durable together.
#[derive(Debug, Clone)]
pub struct RunCommit {
    /// Id of the run.
    pub run_id: RunId,
    /// Id of its thread.
    pub thread_id: ThreadId,
    /// Attempt that writes.
    pub attempt: u32,
    /// Number of the commit within its attempt, increasing. A commit that is sent repeatedly is
    /// written once. A repeated commit must be unchanged, and must be sent before later ones. A
    /// commit with number 0 is written each time.
    pub batch: u64,
    /// New status that is not terminal. A change to pending increases the attempt by one, so that
    /// writes of the former owner are rejected.
    pub advance: Option<RunStatus>,
    /// Journal events, in order.
    pub events: Vec<NewRunEvent>,
    /// Checkpoints, in order.
    pub checkpoints: Vec<CheckpointWrite>,
    /// Ledger entries of calls, in order.
    pub calls: Vec<CallEntry>,
    /// Usage and message totals so far; later attempts continue from them.
    pub so_far: Option<Box<RunCompletionData>>,
    /// End of the run.
    pub end: Option<RunEnd>,
    /// Current time.
    pub at: DateTime<Utc>,
}

impl RunCommit {
    /// Creates an empty commit.
    pub fn new(run_id: RunId, thread_id: ThreadId, attempt: u32, at: DateTime<Utc>) -> Self {
        let (events, checkpoints, calls) = (Vec::new(), Vec::new(), Vec::new());
        Self {
            run_id,
            thread_id,
            attempt,
            batch: 0,
            advance: None,
            events,
            checkpoints,
            calls,
            so_far: None,
            end: None,
            at,
        }
    }

    /// Changes the commit so that it also releases the run to other processes.
    #[must_use]
    pub fn releasing(self) -> Self {
        Self {
            advance: Some(RunStatus::Pending),
            ..self
        }
    }

    #[doc(hidden)]
    #[deprecated(note = "use `releasing`")]
    #[must_use]
    pub fn giving_back(self) -> Self {
        self.releasing()
    }
}

/// Commits the progress of runs: events, checkpoints, calls and status in one transaction. Commits
/// of other attempts than the owner's are rejected.
///
/// ```
/// use chrono::DateTime;
/// use deerflow_core::ids::{RunId, ThreadId};
/// use deerflow_runtime::in_memory::InMemoryStores;
/// use deerflow_runtime::runs::store::{RunCommit, RunCommitStore};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let store = InMemoryStores::new();
/// let (run, thread) = (RunId::parse("r1")?, ThreadId::parse("t1")?);
/// let commit = RunCommit::new(run, thread, 1, DateTime::UNIX_EPOCH);
/// // The run was not admitted, so the commit is rejected.
/// assert!(store.commit(commit).await.is_err());
/// # Ok(())
/// # }
/// ```
#[async_trait]
pub trait RunCommitStore: Send + Sync + std::fmt::Debug {
    /// Makes the whole commit durable, or no part of it. When a commit with an end returns, the
    /// thread is free; it stays `busy` if it has other unfinished runs. A temporary thread is
    /// deleted with the last end, and with it the content of the run: its `kwargs` become `{}` and
    /// its completion has only numbers.
    ///
    /// A commit whose batch is not greater than the last one of this attempt was already written,
    /// although the caller received no confirmation: it has no effect and returns `Ok`, also if it
    /// ended the run. A checkpoint that refers to log positions that do not exist, in addition to
    /// its own messages, is rejected with the whole commit: an earlier commit is missing.
    async fn commit(&self, commit: RunCommit) -> Result<(), CommitError>;
}

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
    /// Status of the run.
    pub status: RunStatus,
    /// `true` if a cancel was requested.
    pub told_to_stop: bool,
    /// Time of acceptance or, for a delayed run, the earliest start.
    pub created_at: DateTime<Utc>,
}

/// Deletes runs.
///
/// ```
/// use deerflow_core::ids::RunId;
/// use deerflow_runtime::in_memory::InMemoryStores;
/// use deerflow_runtime::runs::store::RunDeleteStore;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// assert!(!InMemoryStores::new().delete(&RunId::parse("r1")?).await?);
/// # Ok(())
/// # }
/// ```
#[async_trait]
pub trait RunDeleteStore: Send + Sync + std::fmt::Debug {
    /// Deletes an ended run with its events and checkpoints. Returns `false` if it does not exist.
    async fn delete(&self, run: &RunId) -> Result<bool, StoreError>;

    /// Deletes all runs of a thread with their events. The checkpointer deletes the checkpoints.
    async fn delete_thread(&self, thread: &ThreadId) -> Result<(), StoreError>;
}
