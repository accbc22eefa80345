//! Creating, writing, reading and deleting runs.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::calls::CallEntry;
use super::error::{AdmitError, CommitError, StoreError};
use super::events::NewRunEvent;
use super::requests::RequestKey;
use super::webhooks::WebhookCall;
use crate::ids::{NodeId, RunId, ThreadId};
use crate::runtime::actor_context::{ActorContext, Owner};
use crate::runtime::checkpoint::CheckpointWrite;
use crate::runtime::runs::{
    CancelAction, IfNotExists, MultitaskStrategy, RunCompletionData, RunRecord, RunSpec, RunStatus,
    ThreadStatus, ThreadTtl,
};

/// A run that wants to be admitted.
#[derive(Debug, Clone)]
pub struct NewRun {
    /// The run.
    pub run_id: RunId,
    /// Its thread.
    pub thread_id: ThreadId,
    /// What happens when there is no such thread.
    pub if_not_exists: IfNotExists,
    /// Whether the thread lives only as long as the run.
    pub temporary_thread: bool,
    /// How long the thread stays, if it is made for this run; for ever when absent.
    pub thread_ttl: Option<ThreadTtl>,
    /// The assistant's name.
    pub assistant: String,
    /// Whose it is.
    pub user_id: Option<String>,
    /// Client metadata.
    pub metadata: Map<String, Value>,
    /// The request as clients see it; it holds the input, so an accepted input is never lost.
    pub kwargs: Value,
    /// What it does about a busy thread.
    pub multitask: MultitaskStrategy,
    /// The model entry asked for.
    pub model_name: Option<String>,
    /// Where its end is told.
    pub webhook: Option<String>,
    /// What the request is known by when it comes again.
    pub request: Option<RequestKey>,
    /// What it takes to start the run, now or again; kept until it is over.
    pub recipe: Arc<Recipe>,
    /// Who executes it, if it need not wait.
    pub owner: NodeId,
    /// Most runs that may wait on the thread.
    pub most_waiting: usize,
    /// When it was accepted, or for a delayed run when it may begin.
    pub created_at: DateTime<Utc>,
    /// Now.
    pub at: DateTime<Utc>,
}

/// What a run is started from that waits or whose process died, by whichever process takes it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Recipe {
    /// The request, without what the run's record has.
    pub spec: RunSpec,
    /// Who made it.
    pub actor: ActorContext,
}

/// A run that was admitted.
#[derive(Debug, Clone, PartialEq)]
pub struct Admitted {
    /// The run: `starting` when it has the slot, `pending` when it waits.
    pub run: RunRecord,
    /// Runs of the thread that are told to stop for its sake.
    pub displaced: Vec<RunRecord>,
}

/// A run whose turn has come, or whose owner is gone.
#[derive(Debug, Clone)]
pub struct Claimed {
    /// The run, `starting`, under the attempt of its new owner.
    pub run: RunRecord,
    /// How many of its owners died with it.
    pub losses: u32,
    /// How long ago it was first at work, by the store's clock; zero if it never was.
    pub worked: Duration,
    /// What to start it from, or why that cannot be read.
    pub recipe: Result<Recipe, String>,
}

/// Admits runs, and gives those that wait to who starts them.
///
/// Runs of a thread begin in the order in which they were admitted, one at a time, whatever clock made their `created_at`; one that
/// waits for its time lets those behind it pass until then. One that was given back keeps its thread: until it has gone on, or has
/// ended if it was told to stop, no other run begins there. Different threads are independent. A run that cannot be read is ended
/// as an error by who finds it, and keeps nobody waiting.
#[async_trait]
pub trait RunCreateStore: Send + Sync + std::fmt::Debug {
    /// Does what [`verdict`](crate::runtime::runs::verdict) says of the run, in one transaction with the run's row, the thread's
    /// (made if asked, checked to be the user's), and the thread's status, `busy`. Of two calls at once on one thread at most
    /// one gets the slot. A request whose key is known makes nothing, and is told so before anything else; the key of one that
    /// makes its run is kept with it.
    async fn admit(&self, run: NewRun) -> Result<Admitted, AdmitError>;

    /// Takes a run that waits, is due at `now`, was not told to stop, and whose thread's slot is free: of a thread the one that was
    /// given back, or else the first. It is `starting` then, `updated_at` is `now`, and no other call gets it.
    async fn claim(&self, node: &NodeId, now: DateTime<Utc>)
    -> Result<Option<Claimed>, StoreError>;

    /// Takes the oldest run whose owner no longer lives, whether it was told to stop or not. Its attempt is one higher then, so
    /// that the former owner cannot write it any more; otherwise as with a claim.
    async fn take_over(
        &self,
        node: &NodeId,
        now: DateTime<Utc>,
    ) -> Result<Option<Claimed>, StoreError>;

    /// When the next of the runs that wait for their time may begin.
    async fn next_due(&self, now: DateTime<Utc>) -> Result<Option<DateTime<Utc>>, StoreError>;

    /// Records that the run shall be cancelled; the first action stands. Gives the run as it is then, `None` if unknown.
    async fn request_cancel(
        &self,
        run: &RunId,
        action: CancelAction,
        at: DateTime<Utc>,
    ) -> Result<Option<RunRecord>, StoreError>;
}

/// The end of a run, written once.
#[derive(Debug, Clone, PartialEq)]
pub struct RunEnd {
    /// A terminal status.
    pub status: RunStatus,
    /// Why it failed.
    pub error: Option<String>,
    /// The class of that error.
    pub error_name: Option<String>,
    /// Why it stopped early.
    pub stop_reason: Option<String>,
    /// What it added up to.
    pub completion: RunCompletionData,
    /// What becomes of the thread's status once nothing waits on it; not heeded when the checkpoints go.
    pub thread_status: ThreadStatus,
    /// The thread's title, when the state has one.
    pub title: Option<String>,
    /// The call that tells of it; kept in the outbox, in the same transaction.
    pub webhook: Option<WebhookCall>,
    /// The last state as JSON, for a request that comes again when the thread is gone: kept with the key that the run was made under.
    pub kept_values: Option<Bytes>,
    /// Whether the run's checkpoints go, as after a rollback. The thread's status then follows from the newest one that is left.
    pub discard_checkpoints: bool,
    /// Whether calls of the run may have been written down: they go.
    pub forget_calls: bool,
}

/// What a run wants to make durable together.
#[derive(Debug, Clone)]
pub struct RunCommit {
    /// The run.
    pub run_id: RunId,
    /// Its thread.
    pub thread_id: ThreadId,
    /// Which attempt writes.
    pub attempt: u32,
    /// Tells the commit from the attempt's others, rising: it is written once, however often it is sent. One that comes again
    /// comes as it was, before a later one. 0 stands for no number: the commit is written each time.
    pub batch: u64,
    /// A new status that is not terminal. Back to pending raises the attempt by one, so that who had the run cannot write it.
    pub advance: Option<RunStatus>,
    /// Journal events, in order.
    pub events: Vec<NewRunEvent>,
    /// Checkpoints, in order.
    pub checkpoints: Vec<CheckpointWrite>,
    /// What the ledger shall say of calls, in order.
    pub calls: Vec<CallEntry>,
    /// What the run adds up to so far; later attempts go on from there.
    pub so_far: Option<Box<RunCompletionData>>,
    /// The end.
    pub end: Option<RunEnd>,
    /// Now.
    pub at: DateTime<Utc>,
}

impl RunCommit {
    /// A commit that writes nothing yet.
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

    /// The same commit for a run that another may take now.
    #[must_use]
    pub fn giving_back(self) -> Self {
        Self {
            advance: Some(RunStatus::Pending),
            ..self
        }
    }
}

/// Writes what a run reaches: events, checkpoints, calls and status in one transaction, refused as a whole from anyone but the owner.
#[async_trait]
pub trait RunCommitStore: Send + Sync + std::fmt::Debug {
    /// Makes all of it durable, or nothing. With an end, the thread's slot is free when it returns, and the thread stays `busy`
    /// if other runs of it are not over. A temporary thread goes with the last end, and so does what was said in the run: its
    /// kwargs are `{}` then and its completion has numbers only.
    ///
    /// A commit whose batch is not above the last that this attempt wrote was written before, by a call that never heard so: it
    /// changes nothing and is `Ok`, also when it was the one that ended the run. A checkpoint that names places of the log
    /// that are not there, with its own messages, is refused with all else: what came before it is missing.
    async fn commit(&self, commit: RunCommit) -> Result<(), CommitError>;
}

/// Which runs to list.
#[derive(Debug, Clone)]
pub struct RunListQuery {
    /// At most this many; a hundred when nobody says.
    pub limit: usize,
    /// Skip this many.
    pub offset: usize,
    /// Only in this status, as clients see it: `starting` counts as `pending`.
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

/// Reads runs. Whose is said by [`Owner`].
#[async_trait]
pub trait RunQueryStore: Send + Sync + std::fmt::Debug {
    /// One run.
    async fn get(&self, run: &RunId, owner: &Owner) -> Result<Option<RunRecord>, StoreError>;

    /// A thread's runs, newest first.
    async fn list(
        &self,
        thread: &ThreadId,
        query: &RunListQuery,
        owner: &Owner,
    ) -> Result<Vec<RunRecord>, StoreError>;

    /// An unfinished run of the thread: the one that holds it, or else the first that waits.
    async fn active(&self, thread: &ThreadId) -> Result<Option<RunRecord>, StoreError>;

    /// The last state that was kept of a run for a request that comes again, as long as its key is known.
    async fn kept_values(&self, run: &RunId) -> Result<Option<Bytes>, StoreError>;

    /// Where the owner's runs stand that are not over, oldest first; of one thread if asked. Nothing else of them is read.
    async fn standing(
        &self,
        thread: Option<&ThreadId>,
        owner: &Owner,
    ) -> Result<Vec<RunStanding>, StoreError>;
}

/// Where a run stands that is not over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunStanding {
    /// The run.
    pub run_id: RunId,
    /// Its thread.
    pub thread_id: ThreadId,
    /// How far it is.
    pub status: RunStatus,
    /// Whether it was told to stop.
    pub told_to_stop: bool,
    /// When it was accepted, or when it may begin.
    pub created_at: DateTime<Utc>,
}

/// Deletes runs.
#[async_trait]
pub trait RunDeleteStore: Send + Sync + std::fmt::Debug {
    /// Removes a finished run with its events and checkpoints. False when there was none.
    async fn delete(&self, run: &RunId) -> Result<bool, StoreError>;

    /// Removes all runs of a thread with their events. Checkpoints go through the checkpointer.
    async fn delete_thread(&self, thread: &ThreadId) -> Result<(), StoreError>;
}
