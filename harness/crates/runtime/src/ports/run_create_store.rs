//! Port that admits runs, and assigns queued and orphaned runs to processes.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::error::AdmitError;
use crate::agent::AssistantPin;
use crate::checkpoint::ThreadHead;
use crate::definition::{CancelAction, RunRecord, RunRequest, StoreError, UserRunLimits};
use deerflow_core::actor_context::ActorContext;
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
    /// Stored request from which any process can start the run. Retained until the run ends, and
    /// afterwards if the run is poisoned.
    pub recipe: Arc<StoredRunRequest>,
    /// Owner of the run, if it starts at once.
    pub owner: NodeId,
    /// Maximum number of queued runs on the thread.
    pub most_waiting: usize,
    /// Limits of the unfinished runs of the user.
    pub per_user: UserRunLimits,
    /// Time of acceptance or, for a delayed run, the earliest start.
    pub created_at: DateTime<Utc>,
    /// Current time.
    pub at: DateTime<Utc>,
}

impl NewRun {
    /// Returns the request of the run. Its echo is stored in the run's record. If the process dies
    /// before the first checkpoint, the input is restored from the echo.
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
    /// Version of the assistant that was current when the run was accepted; `None` for an
    /// assistant without versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pin: Option<AssistantPin>,
}

/// A run that was admitted.
#[derive(Debug, Clone, PartialEq)]
pub struct Admitted {
    /// The run: `starting` if it may start at once, `pending` if it is queued.
    pub run: RunRecord,
    /// Runs of the thread of which this admission requested the cancel.
    pub displaced: Vec<RunRecord>,
    /// Head of the thread, read by the transaction that admitted the run. `None` if it was not read:
    /// a store may omit it, and does for a queued run, before which other runs write.
    pub head: Option<ThreadHead>,
}

/// Queued or orphaned run that a process has claimed.
#[derive(Debug, Clone)]
pub struct Claimed {
    /// The run, `starting`, with the attempt of its new owner.
    pub run: RunRecord,
    /// Number of its owners that died or were blocked by it.
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
/// use deerflow_runtime::runs::UserRunLimits;
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
///         None => store.claim(node, now, UserRunLimits::default()).await,
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
    /// request is stored with its run. Limits per user hold for concurrent calls as well.
    async fn admit(&self, run: NewRun) -> Result<Admitted, AdmitError>;

    /// Claims a queued run without a cancel request that may start at `now` and has a free thread.
    /// Of the runs of a thread, the released one is first, then the oldest one. The run becomes
    /// `starting` with `updated_at` set to `now`, and no other call returns it. A run of a user who
    /// has as many active runs as `limits` permit is not claimed, unless it was released.
    async fn claim(
        &self,
        node: &NodeId,
        now: DateTime<Utc>,
        limits: UserRunLimits,
    ) -> Result<Option<Claimed>, StoreError>;

    /// Claims the oldest orphaned run: its owner has no valid lease. Runs with a cancel request are
    /// included. The attempt increases by one, so that writes of the former owner are rejected;
    /// otherwise as with [`claim`](Self::claim).
    async fn take_over(
        &self,
        node: &NodeId,
        now: DateTime<Utc>,
    ) -> Result<Option<Claimed>, StoreError>;

    /// Returns the earliest start after `now` of the delayed runs; `None` if no run is delayed.
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
