//! The nine verbs of a run: create, follow, wait for, cancel, read and delete runs.

use std::sync::Arc;
use std::time::Duration;

use super::run_waits::RunWaits;
use super::visible_runs::{self, find};
use crate::definition::{CancelAction, RunLimits, RunRecord, RunRequest, RunStatus};
use crate::dispatch::create;
use crate::kernel::{RunError, Runtime};
use crate::ports::{RunListQuery, RuntimePorts};
use crate::stream_bridge::ResumeFrom;
use crate::streaming::{RunStream, WaitOutcome, stream_service, wait_service};
use deerflow_core::ids::{RunId, ThreadId};

/// Facade of the runtime: creates, follows, cancels, reads and deletes runs. Other operations of
/// the same runtime have handles of their own: [`RunQueries`](super::RunQueries),
/// [`RunWaits`](super::RunWaits), [`ThreadStreams`](super::ThreadStreams) and
/// [`NodeLifecycle`](super::NodeLifecycle).
///
/// Every method acts for the bound actor ([`actor_context`](deerflow_core::actor_context)); runs of
/// other users are reported as not found. A created run is durable before the method returns, and
/// continues if its caller disconnects.
#[derive(Debug)]
pub struct RunsFacade {
    runtime: Arc<Runtime>,
}

impl RunsFacade {
    /// Creates a runtime from its ports and limits, and its facade.
    pub fn new(ports: RuntimePorts, limits: RunLimits) -> Self {
        Self::over(Runtime::new(ports, limits))
    }

    /// Creates the facade of an existing runtime.
    pub fn over(runtime: Arc<Runtime>) -> Self {
        Self { runtime }
    }

    /// Returns the runtime, from which the handles of other operations are created.
    pub fn runtime(&self) -> &Arc<Runtime> {
        &self.runtime
    }

    /// Creates a run without waiting for its end.
    #[tracing::instrument(name = "create_background", skip_all)]
    pub async fn create_background(&self, request: RunRequest) -> Result<RunRecord, RunError> {
        Ok(create(request, &self.runtime).await?.record)
    }

    /// Creates a run and subscribes to it from its first event. `heartbeat` is the maximum interval
    /// between two items of the stream; zero disables heartbeats.
    #[tracing::instrument(name = "create_and_stream", skip_all)]
    pub async fn create_and_stream(
        &self,
        request: RunRequest,
        heartbeat: Duration,
    ) -> Result<(RunRecord, RunStream), RunError> {
        let handle = create(request, &self.runtime).await?;
        let stream =
            stream_service::subscribe(&handle.record, ResumeFrom::Start, heartbeat, &self.runtime)
                .await?;
        Ok((handle.record, stream))
    }

    /// Creates a run and waits for its end. The returned record is that of the admission. The wait
    /// also ends for a run whose thread was deleted.
    #[tracing::instrument(name = "create_and_wait", skip_all)]
    pub async fn create_and_wait(
        &self,
        request: RunRequest,
    ) -> Result<(RunRecord, WaitOutcome), RunError> {
        let (record, outcome) = RunWaits::new(&self.runtime).create(request).await?;
        Ok((record, outcome.await))
    }

    /// Subscribes to an existing run. Without a thread, the run is looked up by its id alone.
    /// `heartbeat` has the same meaning as in [`RunsFacade::create_and_stream`].
    #[tracing::instrument(name = "join_stream", skip_all)]
    pub async fn join_stream(
        &self,
        thread: Option<&ThreadId>,
        run: &RunId,
        from: ResumeFrom,
        heartbeat: Duration,
    ) -> Result<RunStream, RunError> {
        let record = find(thread, run, &self.runtime).await?;
        stream_service::subscribe(&record, from, heartbeat, &self.runtime).await
    }

    /// Waits for the end of an existing run.
    #[tracing::instrument(name = "join_wait", skip_all)]
    pub async fn join_wait(
        &self,
        thread: Option<&ThreadId>,
        run: &RunId,
    ) -> Result<WaitOutcome, RunError> {
        let record = find(thread, run, &self.runtime).await?;
        wait_service::wait(&record, &self.runtime).await
    }

    /// Requests a run to stop and, with `wait`, waits until it has ended. May be called again for a
    /// run that is already stopping.
    ///
    /// # Errors
    /// [`RunError::NotFound`], and [`RunError::NotCancellable`] if the run has ended with a status
    /// other than `interrupted`.
    #[tracing::instrument(name = "cancel", skip_all)]
    pub async fn cancel(
        &self,
        thread: Option<&ThreadId>,
        run: &RunId,
        action: CancelAction,
        wait: bool,
    ) -> Result<RunRecord, RunError> {
        let record = find(thread, run, &self.runtime).await?;
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
        find(thread, run, &self.runtime).await
    }

    /// Returns one run.
    pub async fn get_run(
        &self,
        thread: Option<&ThreadId>,
        run: &RunId,
    ) -> Result<Option<RunRecord>, RunError> {
        visible_runs::get(thread, run, &self.runtime).await
    }

    /// Lists the runs of a thread, newest first.
    pub async fn list_runs(
        &self,
        thread: &ThreadId,
        query: &RunListQuery,
    ) -> Result<Vec<RunRecord>, RunError> {
        visible_runs::list(thread, query, &self.runtime).await
    }

    /// Deletes an ended run with its events and checkpoints.
    ///
    /// # Errors
    /// [`RunError::NotFound`], and [`RunError::StillActive`] if the run has not ended.
    pub async fn delete_run(&self, thread: Option<&ThreadId>, run: &RunId) -> Result<(), RunError> {
        let record = find(thread, run, &self.runtime).await?;
        if !record.status.is_terminal() {
            return Err(RunError::StillActive(record.run_id));
        }
        self.runtime.ports.bridge.cleanup(run, Duration::ZERO).await;
        if self.runtime.ports.delete.delete(run).await? {
            // The state may be the one that the run stored.
            self.runtime.registry.heads.remove(&record.thread_id);
            Ok(())
        } else {
            Err(RunError::NotFound(record.run_id))
        }
    }
}
