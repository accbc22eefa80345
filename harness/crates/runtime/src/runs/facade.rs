//! Entry points of the runtime: creating, following, waiting for, cancelling and deleting runs.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;

use crate::admission::{Admission, RunTicket, message_limits, plan};
use crate::definition::{
    CancelAction, RunCompletionData, RunLimits, RunRecord, RunRequest, RunStatus, StoreError,
};
use crate::dispatch::{RunHandle, dispatcher, launch};
use crate::failover::recovery;
use crate::kernel::{LeaseStatus, RunError, Runtime, StopSignal};
use crate::membership::join;
use crate::ports::{RunListQuery, RuntimePorts, UnfinishedRun};
use crate::stream_bridge::ResumeFrom;
use crate::streaming::{
    RunStream, ThreadCursor, ThreadItem, WaitOutcome, stream_service, thread_service, wait_service,
};
use deerflow_core::actor_context::{self, ActorContext, Owner};
use deerflow_core::compute::continuing;
use deerflow_core::ids::{RunId, ThreadId};
use deerflow_core::tasks::TaskKind;

/// Facade of the runtime: creates, follows, cancels, reads and deletes runs.
///
/// Every method acts for the bound actor ([`actor_context`]); runs of other users are reported as
/// not found. A created run is durable before the method returns, and continues if its caller
/// disconnects.
#[derive(Debug)]
pub struct RunsFacade {
    runtime: Arc<Runtime>,
}

impl RunsFacade {
    /// Creates a runtime from its ports and limits.
    pub fn new(ports: RuntimePorts, limits: RunLimits) -> Self {
        Self {
            runtime: Runtime::new(ports, limits),
        }
    }

    /// Sets the limits for runs that are created from now on.
    pub fn set_limits(&self, limits: RunLimits) {
        *self.runtime.registry.limits.write() = limits;
    }

    /// Creates a run without waiting for its end.
    #[tracing::instrument(name = "create_background", skip_all)]
    pub async fn create_background(&self, request: RunRequest) -> Result<RunRecord, RunError> {
        Ok(self.create(request).await?.record)
    }

    /// Creates a run and subscribes to it from its first event. `heartbeat` is the maximum interval
    /// between two items of the stream.
    #[tracing::instrument(name = "create_and_stream", skip_all)]
    pub async fn create_and_stream(
        &self,
        request: RunRequest,
        heartbeat: Duration,
    ) -> Result<(RunRecord, RunStream), RunError> {
        let handle = self.create(request).await?;
        let stream =
            stream_service::subscribe(&handle.record, ResumeFrom::Start, heartbeat, &self.runtime)
                .await?;
        Ok((handle.record, stream))
    }

    /// Creates a run and waits for its end. The returned record is that of the admission.
    #[tracing::instrument(name = "create_and_wait", skip_all)]
    pub async fn create_and_wait(
        &self,
        request: RunRequest,
    ) -> Result<(RunRecord, WaitOutcome), RunError> {
        let (record, outcome) = self.create_for_waiting(request).await?;
        Ok((record, outcome.await))
    }

    /// Creates a run as [`RunsFacade::create_and_wait`] does, but returns the record at once, with
    /// a future of the outcome. The future also resolves for a run whose thread was deleted.
    #[tracing::instrument(name = "create_for_waiting", skip_all)]
    pub async fn create_for_waiting(
        &self,
        request: RunRequest,
    ) -> Result<(RunRecord, BoxFuture<'static, WaitOutcome>), RunError> {
        let RunHandle { record, active } = self.create(request).await?;
        let runtime = self.runtime.clone();
        let waiting = {
            let record = record.clone();
            async move {
                match active.ended().await {
                    Some(outcome) => outcome.into(),
                    None => wait_service::wait(&record, &runtime)
                        .await
                        .unwrap_or_else(|error| WaitOutcome::unknown(&error)),
                }
            }
        };
        Ok((record, waiting.boxed()))
    }

    /// Subscribes to an existing run. Without a thread, the run is looked up by its id alone.
    #[tracing::instrument(name = "join_stream", skip_all)]
    pub async fn join_stream(
        &self,
        thread: Option<&ThreadId>,
        run: &RunId,
        from: ResumeFrom,
        heartbeat: Duration,
    ) -> Result<RunStream, RunError> {
        let record = self.find(thread, run).await?;
        stream_service::subscribe(&record, from, heartbeat, &self.runtime).await
    }

    /// Subscribes to all runs of a thread, one after the other. The stream ends at shutdown.
    pub async fn follow_thread(
        &self,
        thread: &ThreadId,
        from: ThreadCursor,
        heartbeat: Duration,
    ) -> Result<BoxStream<'static, ThreadItem>, RunError> {
        Ok(thread_service::follow(thread.clone(), owner(), from, heartbeat, &self.runtime).await?)
    }

    /// Waits for the end of an existing run.
    #[tracing::instrument(name = "join_wait", skip_all)]
    pub async fn join_wait(
        &self,
        thread: Option<&ThreadId>,
        run: &RunId,
    ) -> Result<WaitOutcome, RunError> {
        let record = self.find(thread, run).await?;
        wait_service::wait(&record, &self.runtime).await
    }

    /// Requests a run to stop and, with `wait`, waits until it has ended. May be called again for a
    /// run that is already stopping.
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
            self.runtime.request_cancel(run, action).await?;
            if wait {
                wait_service::wait_until_ended(&record, &self.runtime).await?;
            }
        }
        self.find(thread, run).await
    }

    /// Returns one run.
    pub async fn get_run(
        &self,
        thread: Option<&ThreadId>,
        run: &RunId,
    ) -> Result<Option<RunRecord>, RunError> {
        let stored = self.runtime.ports.query.get(run, &owner()).await?;
        Ok(stored
            .filter(|record| thread.is_none_or(|thread| record.thread_id == *thread))
            .map(|record| self.overlay(record)))
    }

    /// Lists the runs of a thread, newest first.
    pub async fn list_runs(
        &self,
        thread: &ThreadId,
        query: &RunListQuery,
    ) -> Result<Vec<RunRecord>, RunError> {
        let stored = self
            .runtime
            .ports
            .query
            .list(thread, query, &owner())
            .await?;
        Ok(stored
            .into_iter()
            .map(|record| self.overlay(record))
            .collect())
    }

    /// Lists the actor's unfinished runs of one thread or of all threads, oldest first.
    pub async fn unfinished_runs(
        &self,
        thread: Option<&ThreadId>,
    ) -> Result<Vec<UnfinishedRun>, RunError> {
        let mut stored = self.runtime.ports.query.standing(thread, &owner()).await?;
        for run in &mut stored {
            run.status = self
                .runtime
                .registry
                .active(&run.run_id)
                .map_or(run.status, |active| active.status());
        }
        Ok(stored)
    }

    /// Lists the unfinished runs of all users.
    pub async fn load(&self) -> Result<Vec<UnfinishedRun>, RunError> {
        Ok(self
            .runtime
            .ports
            .query
            .standing(None, &Owner::None)
            .await?)
    }

    /// Deletes an ended run with its events and checkpoints.
    pub async fn delete_run(&self, thread: Option<&ThreadId>, run: &RunId) -> Result<(), RunError> {
        let record = self.find(thread, run).await?;
        if !record.status.is_terminal() {
            return Err(RunError::StillActive(record.run_id));
        }
        self.runtime.ports.bridge.cleanup(run, Duration::ZERO).await;
        if self.runtime.ports.delete.delete(run).await? {
            Ok(())
        } else {
            Err(RunError::NotFound(record.run_id))
        }
    }

    /// Registers this process, resumes orphaned runs and starts the dispatcher of queued runs.
    /// Called once, before the first request. Returns the number of orphaned runs.
    pub async fn recover(&self) -> Result<usize, RunError> {
        let lease = self.runtime.registry.limits.read().lease;
        join::join(&self.runtime, lease).await?;
        recovery::register_queued(&self.runtime).await?;
        let orphaned = dispatcher::take_over(&self.runtime).await?;
        dispatcher::start(&self.runtime);
        Ok(orphaned)
    }

    /// Registers this process as [`RunsFacade::recover`] does, for a process that executes only the
    /// runs it creates. Queued runs are started by other processes. Orphaned runs are taken over
    /// only in an exclusive store: no other process would resume them, and their threads would stay
    /// busy.
    pub async fn join(&self) -> Result<usize, RunError> {
        let lease = self.runtime.registry.limits.read().lease;
        join::join(&self.runtime, lease).await?;
        if self.runtime.registry.node_lease.is_shared() {
            return Ok(0);
        }
        dispatcher::take_over(&self.runtime).await
    }

    /// Releases every run that is executed here, so that another process or the next start resumes
    /// it. Shutdown calls this when its grace period ends. The progress of each run is stored
    /// before its release.
    pub fn release_all(&self) {
        for (_, active) in self.runtime.registry.active.executed() {
            active.stop(StopSignal::Release);
        }
    }

    #[doc(hidden)]
    #[deprecated(note = "use `release_all`")]
    pub fn hand_over_all(&self) {
        self.release_all();
    }

    /// Returns the state of this process's lease, or `None` if the store is exclusive.
    pub fn lease(&self) -> Option<LeaseStatus> {
        self.runtime.registry.node_lease.lease()
    }

    /// Reports whether another process has taken the store lock of this one. This process admits no
    /// runs then.
    pub fn is_displaced(&self) -> bool {
        self.runtime.registry.node_lease.is_displaced()
    }

    /// Returns the number of runs that are executed here.
    pub fn live_runs(&self) -> usize {
        self.runtime.registry.active.executed().len()
    }

    /// Returns the ports, for callers that read other data than runs.
    pub fn parts(&self) -> &RuntimePorts {
        &self.runtime.ports
    }

    /// Creates a run: plans it, admits it, and launches or queues it.
    async fn create(&self, request: RunRequest) -> Result<RunHandle, RunError> {
        if self.runtime.ports.tasks.token().is_cancelled() {
            return Err(RunError::ShuttingDown);
        }
        if self.is_displaced() {
            return Err(StoreError::Unavailable(
                "another process has taken the store lock".to_owned(),
            )
            .into());
        }
        let actor = actor_context::current()
            .unwrap_or_else(|| ActorContext::user(actor_context::DEFAULT_USER_ID));
        let agent = self
            .runtime
            .ports
            .agents
            .resolve(&request.assistant, &request.config.options)
            .await?;
        let limits = *self.runtime.registry.limits.read();
        message_limits::check(&request, &limits, &self.runtime.ports).await?;
        let plan = plan(request, agent, actor, &limits, &*self.runtime.ports.ids);
        if let Some(requested) = &plan.request().checkpoint
            && self
                .runtime
                .ports
                .checkpointer
                .get(plan.thread_id(), Some(&requested.checkpoint_id))
                .await?
                .is_none()
        {
            return Err(RunError::CheckpointNotFound(
                requested.checkpoint_id.clone(),
            ));
        }
        // Admission runs in its own task: a caller that disconnects must not leave an admitted run
        // that is never launched.
        let runtime = self.runtime.clone();
        let admission = async move {
            Ok(match runtime.admit(&plan).await? {
                Admission::Ready(ticket) => launch(ticket, plan, &runtime),
                Admission::Queued(RunTicket { record, active }) => {
                    dispatcher::start(&runtime);
                    RunHandle { record, active }
                }
            })
        };
        let admitted = self
            .runtime
            .ports
            .tasks
            .spawn(TaskKind::Finish, "admission", continuing(admission))
            .await;
        admitted
            .map_err(|error| StoreError::Unavailable(error.to_string()))?
            .map_err(|panic| StoreError::Failed(panic.to_string()))?
    }

    /// Returns the limits of new runs.
    pub fn limits(&self) -> RunLimits {
        *self.runtime.registry.limits.read()
    }

    async fn find(&self, thread: Option<&ThreadId>, run: &RunId) -> Result<RunRecord, RunError> {
        self.get_run(thread, run)
            .await?
            .ok_or_else(|| RunError::NotFound(run.clone()))
    }

    /// Updates a record from the handle of the run in this process: the status `running` is stored
    /// with a delay.
    fn overlay(&self, mut record: RunRecord) -> RunRecord {
        let active = self
            .runtime
            .registry
            .active(&record.run_id)
            .map(|active| active.status());
        if record.status == RunStatus::Starting && active == Some(RunStatus::Running) {
            record.status = RunStatus::Running;
        }
        if !record.status.is_terminal() {
            record.completion = RunCompletionData::default();
        }
        record
    }
}

/// Returns the bound actor's user id as owner, or the default user if no actor is bound.
fn owner() -> Owner {
    Owner::User(actor_context::effective_user_id())
}
