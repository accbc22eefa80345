//! The nine verbs of the runtime, and nothing else: each reads as the way of one request.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;

use super::error::RunError;
use super::live::Stop;
use super::membership::{self, LeaseView};
use super::message_limits;
use super::parts::{RunLimits, RuntimeParts};
use super::planner::plan;
use super::queue;
use super::record::{RunCompletionData, RunRecord};
use super::recovery;
use super::registry::{Admission, RunRegistry, RunTicket};
use super::spec::{CancelAction, RunSpec};
use super::status::RunStatus;
use super::store::{Recipe, RunListQuery, RunStanding, StoreError};
use super::stream_service::{self, RunStream};
use super::supervisor::{RunHandle, launch};
use super::thread_service::{self, ThreadCursor, ThreadItem};
use super::wait_service::{self, WaitOutcome};
use crate::ids::{RunId, ThreadId};
use crate::runtime::actor_context::{self, ActorContext, Owner};
use crate::runtime::compute::continuing;
use crate::runtime::stream_bridge::ResumeFrom;
use crate::runtime::tasks::TaskKind;

/// Creates, follows, cancels, reads and deletes runs.
///
/// Every verb acts for the bound actor ([`actor_context`]); another user's run looks as if it did not exist. A created run is
/// durable before the verb returns, and goes on when its caller goes away.
#[derive(Debug)]
pub struct RunsFacade {
    parts: RuntimeParts,
    registry: Arc<RunRegistry>,
}

impl RunsFacade {
    /// A runtime of these parts.
    pub fn new(parts: RuntimeParts, limits: RunLimits) -> Self {
        let registry = Arc::new(RunRegistry::new(parts.ids.node_id(), limits));
        Self { parts, registry }
    }

    /// Bounds for runs created from now on.
    pub fn set_limits(&self, limits: RunLimits) {
        *self.registry.limits.write() = limits;
    }

    /// Creates a run that nobody waits for.
    #[tracing::instrument(name = "create_background", skip_all)]
    pub async fn create_background(&self, spec: RunSpec) -> Result<RunRecord, RunError> {
        Ok(self.create(spec).await?.record)
    }

    /// Creates a run and follows it from its first event. `heartbeat` is the longest silence of the stream.
    #[tracing::instrument(name = "create_and_stream", skip_all)]
    pub async fn create_and_stream(
        &self,
        spec: RunSpec,
        heartbeat: Duration,
    ) -> Result<(RunRecord, RunStream), RunError> {
        let handle = self.create(spec).await?;
        let stream = stream_service::subscribe(
            &handle.record,
            ResumeFrom::Start,
            heartbeat,
            &self.registry,
            &self.parts,
        )
        .await?;
        Ok((handle.record, stream))
    }

    /// Creates a run and waits for its end. The record is as it was admitted.
    #[tracing::instrument(name = "create_and_wait", skip_all)]
    pub async fn create_and_wait(
        &self,
        spec: RunSpec,
    ) -> Result<(RunRecord, WaitOutcome), RunError> {
        let (record, outcome) = self.create_for_waiting(spec).await?;
        Ok((record, outcome.await))
    }

    /// As [`RunsFacade::create_and_wait`] for callers that have something to say before the end: gives the record at once, and the
    /// outcome when it is there, even of a run whose thread is gone by then.
    #[tracing::instrument(name = "create_for_waiting", skip_all)]
    pub async fn create_for_waiting(
        &self,
        spec: RunSpec,
    ) -> Result<(RunRecord, BoxFuture<'static, WaitOutcome>), RunError> {
        let RunHandle { record, live } = self.create(spec).await?;
        let (registry, parts) = (self.registry.clone(), self.parts.clone());
        let waiting = {
            let record = record.clone();
            async move {
                match live.ended().await {
                    Some(outcome) => outcome.into(),
                    None => wait_service::wait(&record, &registry, &parts)
                        .await
                        .unwrap_or_else(|error| WaitOutcome::unknown(&error)),
                }
            }
        };
        Ok((record, waiting.boxed()))
    }

    /// Follows a run that exists. Without a thread the run is found by its id alone.
    #[tracing::instrument(name = "join_stream", skip_all)]
    pub async fn join_stream(
        &self,
        thread: Option<&ThreadId>,
        run: &RunId,
        from: ResumeFrom,
        heartbeat: Duration,
    ) -> Result<RunStream, RunError> {
        let record = self.find(thread, run).await?;
        stream_service::subscribe(&record, from, heartbeat, &self.registry, &self.parts).await
    }

    /// Follows a thread from one run to the next, until the runtime ends.
    pub async fn follow_thread(
        &self,
        thread: &ThreadId,
        from: ThreadCursor,
        heartbeat: Duration,
    ) -> Result<BoxStream<'static, ThreadItem>, RunError> {
        Ok(thread_service::follow(
            thread.clone(),
            owner(),
            from,
            heartbeat,
            &self.registry,
            &self.parts,
        )
        .await?)
    }

    /// Waits for the end of a run that exists.
    #[tracing::instrument(name = "join_wait", skip_all)]
    pub async fn join_wait(
        &self,
        thread: Option<&ThreadId>,
        run: &RunId,
    ) -> Result<WaitOutcome, RunError> {
        let record = self.find(thread, run).await?;
        wait_service::wait(&record, &self.registry, &self.parts).await
    }

    /// Asks a run to stop, and with `wait` stays until it has. A run that is stopping already may be asked again.
    #[tracing::instrument(name = "cancel", skip_all)]
    pub async fn cancel(
        &self,
        thread: Option<&ThreadId>,
        run: &RunId,
        action: CancelAction,
        wait: bool,
    ) -> Result<RunRecord, RunError> {
        let record = self.find(thread, run).await?;
        if record.status.is_terminal() && record.status != RunStatus::Interrupted {
            return Err(RunError::NotCancellable {
                run_id: record.run_id,
                status: record.status,
            });
        }
        if !record.status.is_terminal() {
            self.registry
                .request_cancel(run, action, &self.parts)
                .await?;
            if wait {
                wait_service::until_over(&record, &self.registry, &self.parts).await?;
            }
        }
        self.find(thread, run).await
    }

    /// One run.
    pub async fn get_run(
        &self,
        thread: Option<&ThreadId>,
        run: &RunId,
    ) -> Result<Option<RunRecord>, RunError> {
        let found = self.parts.query.get(run, &owner()).await?;
        Ok(found
            .filter(|record| thread.is_none_or(|thread| record.thread_id == *thread))
            .map(|record| self.overlay(record)))
    }

    /// A thread's runs, newest first.
    pub async fn list_runs(
        &self,
        thread: &ThreadId,
        query: &RunListQuery,
    ) -> Result<Vec<RunRecord>, RunError> {
        let found = self.parts.query.list(thread, query, &owner()).await?;
        Ok(found
            .into_iter()
            .map(|record| self.overlay(record))
            .collect())
    }

    /// Where the actor's runs stand that are not over, of one thread or of all, in the order of their making.
    pub async fn unfinished_runs(
        &self,
        thread: Option<&ThreadId>,
    ) -> Result<Vec<RunStanding>, RunError> {
        let mut found = self.parts.query.standing(thread, &owner()).await?;
        for run in &mut found {
            run.status = self
                .registry
                .live(&run.run_id)
                .map_or(run.status, |live| live.status());
        }
        Ok(found)
    }

    /// Where all runs stand that are not over, whoever has them.
    pub async fn load(&self) -> Result<Vec<RunStanding>, RunError> {
        Ok(self.parts.query.standing(None, &Owner::None).await?)
    }

    /// Removes a finished run with its events and checkpoints.
    pub async fn delete_run(&self, thread: Option<&ThreadId>, run: &RunId) -> Result<(), RunError> {
        let record = self.find(thread, run).await?;
        if !record.status.is_terminal() {
            return Err(RunError::StillActive(record.run_id));
        }
        self.parts.bridge.cleanup(run, Duration::ZERO).await;
        if self.parts.delete.delete(run).await? {
            Ok(())
        } else {
            Err(RunError::NotFound(record.run_id))
        }
    }

    /// Joins the processes that work on the store, goes on with what a former one left unfinished, and with what waited there.
    /// Called once, before the first request. Gives the number of runs that were left.
    pub async fn recover(&self) -> Result<usize, RunError> {
        let lease = self.registry.limits.read().lease;
        membership::join(&self.registry, lease, &self.parts).await?;
        recovery::find_waiting(&self.registry, &self.parts).await?;
        let left = queue::take_over(&self.registry, &self.parts).await?;
        queue::open(&self.registry, &self.parts);
        Ok(left)
    }

    /// As [`RunsFacade::recover`], for a process that makes only runs of its own and leaves what waits to others. What a former one
    /// left unfinished it goes on with only where it has the store for itself: nobody else would, and its thread would stay busy.
    pub async fn join(&self) -> Result<usize, RunError> {
        let lease = self.registry.limits.read().lease;
        membership::join(&self.registry, lease, &self.parts).await?;
        if self.registry.membership.is_shared() {
            return Ok(0);
        }
        queue::take_over(&self.registry, &self.parts).await
    }

    /// Gives every run executed here back for another process, or the next one, to go on with, as shutdown does when its patience
    /// ends. What a run has reached is durable first.
    pub fn hand_over_all(&self) {
        for (_, live) in self.registry.live.executed() {
            live.stop(Stop::HandOver);
        }
    }

    /// How this process stands with its lease, where others may work on the same store.
    pub fn lease(&self) -> Option<LeaseView> {
        self.registry.membership.lease()
    }

    /// Whether another process has taken the store of this one, which it must not share with it: none is admitted here then.
    pub fn is_displaced(&self) -> bool {
        self.registry.membership.is_displaced()
    }

    /// How many runs are executed here.
    pub fn live_runs(&self) -> usize {
        self.registry.live.executed().len()
    }

    /// The ports, for callers that read beside runs.
    pub fn parts(&self) -> &RuntimeParts {
        &self.parts
    }

    /// The way every run goes: plan, admit, launch, or wait to be launched.
    async fn create(&self, mut spec: RunSpec) -> Result<RunHandle, RunError> {
        if self.parts.tasks.token().is_cancelled() {
            return Err(RunError::ShuttingDown);
        }
        if self.is_displaced() {
            return Err(StoreError::Unavailable(
                "another process has taken the store of this one".to_owned(),
            )
            .into());
        }
        let actor = actor_context::current()
            .unwrap_or_else(|| ActorContext::user(actor_context::DEFAULT_USER_ID));
        let agent = self
            .parts
            .agents
            .resolve(&spec.assistant, &spec.config.options)
            .await?;
        let recipe = recipe_of(&mut spec, &actor);
        let limits = *self.registry.limits.read();
        message_limits::check(&spec, &limits, &self.parts).await?;
        let plan = plan(spec, agent, actor, &limits, &*self.parts.ids);
        if let Some(wanted) = &plan.checkpoint
            && self
                .parts
                .checkpointer
                .get(&plan.thread_id, Some(&wanted.checkpoint_id))
                .await?
                .is_none()
        {
            return Err(RunError::CheckpointNotFound(wanted.checkpoint_id.clone()));
        }
        // In a task of its own: a caller that goes away must not leave an admitted run that nobody launches.
        let (registry, parts) = (self.registry.clone(), self.parts.clone());
        let admission = async move {
            Ok(match registry.admit(&plan, recipe, &parts).await? {
                Admission::Now(ticket) => launch(ticket, plan, &registry, &parts),
                Admission::Later(RunTicket { record, live }) => {
                    queue::open(&registry, &parts);
                    RunHandle { record, live }
                }
            })
        };
        let admitted = self
            .parts
            .tasks
            .spawn(TaskKind::Finish, "admission", continuing(admission))
            .await;
        admitted
            .map_err(|gone| StoreError::Unavailable(gone.to_string()))?
            .map_err(|panic| StoreError::Failed(panic.to_string()))?
    }

    /// The bounds that hold for new runs.
    pub fn limits(&self) -> RunLimits {
        *self.registry.limits.read()
    }

    async fn find(&self, thread: Option<&ThreadId>, run: &RunId) -> Result<RunRecord, RunError> {
        self.get_run(thread, run)
            .await?
            .ok_or_else(|| RunError::NotFound(run.clone()))
    }

    /// The store may not have heard yet that a run of this process has begun to work.
    fn overlay(&self, mut record: RunRecord) -> RunRecord {
        let live = self.registry.live(&record.run_id).map(|live| live.status());
        if record.status == RunStatus::Starting && live == Some(RunStatus::Running) {
            record.status = RunStatus::Running;
        }
        if !record.status.is_terminal() {
            record.completion = RunCompletionData::default();
        }
        record
    }
}

/// The request without what the run's record has of it.
fn recipe_of(spec: &mut RunSpec, actor: &ActorContext) -> Arc<Recipe> {
    let (metadata, kwargs) = (
        std::mem::take(&mut spec.metadata),
        std::mem::take(&mut spec.kwargs),
    );
    let recipe = Recipe {
        spec: spec.clone(),
        actor: actor.clone(),
    };
    (spec.metadata, spec.kwargs) = (metadata, kwargs);
    Arc::new(recipe)
}

/// Whose runs are meant: the bound actor's, or the default user's where an embedding program binds none.
fn owner() -> Owner {
    Owner::User(actor_context::effective_user_id())
}
