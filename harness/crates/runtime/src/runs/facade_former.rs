//! Former methods of the facade, for crates that were written against them.

use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;

use super::facade::RunsFacade;
use super::node_lifecycle::NodeLifecycle;
use super::run_queries::RunQueries;
use super::run_waits::RunWaits;
use super::thread_streams::ThreadStreams;
use crate::definition::{RunLimits, RunRecord, RunRequest};
use crate::kernel::{LeaseStatus, RunError};
use crate::ports::{RuntimePorts, UnfinishedRun};
use crate::streaming::{ThreadCursor, ThreadItem, WaitOutcome};
use deerflow_core::ids::ThreadId;

#[doc(hidden)]
impl RunsFacade {
    #[deprecated(note = "use `NodeLifecycle::set_limits`")]
    pub fn set_limits(&self, limits: RunLimits) {
        NodeLifecycle::new(self.runtime()).set_limits(limits);
    }

    #[deprecated(note = "use `NodeLifecycle::limits`")]
    pub fn limits(&self) -> RunLimits {
        NodeLifecycle::new(self.runtime()).limits()
    }

    #[deprecated(note = "use `RunWaits::create`")]
    pub async fn create_for_waiting(
        &self,
        request: RunRequest,
    ) -> Result<(RunRecord, BoxFuture<'static, WaitOutcome>), RunError> {
        RunWaits::new(self.runtime()).create(request).await
    }

    #[deprecated(note = "use `ThreadStreams::follow`")]
    pub async fn follow_thread(
        &self,
        thread: &ThreadId,
        from: ThreadCursor,
        heartbeat: Duration,
    ) -> Result<BoxStream<'static, ThreadItem>, RunError> {
        ThreadStreams::new(self.runtime())
            .follow(thread, from, heartbeat)
            .await
    }

    #[deprecated(note = "use `RunQueries::unfinished`")]
    pub async fn unfinished_runs(
        &self,
        thread: Option<&ThreadId>,
    ) -> Result<Vec<UnfinishedRun>, RunError> {
        RunQueries::new(self.runtime()).unfinished(thread).await
    }

    #[deprecated(note = "use `RunQueries::unfinished_of_all_users`")]
    pub async fn load(&self) -> Result<Vec<UnfinishedRun>, RunError> {
        RunQueries::new(self.runtime())
            .unfinished_of_all_users()
            .await
    }

    #[deprecated(note = "use `NodeLifecycle::recover`")]
    pub async fn recover(&self) -> Result<usize, RunError> {
        NodeLifecycle::new(self.runtime()).recover().await
    }

    #[deprecated(note = "use `NodeLifecycle::join`")]
    pub async fn join(&self) -> Result<usize, RunError> {
        NodeLifecycle::new(self.runtime()).join().await
    }

    #[deprecated(note = "use `NodeLifecycle::release_all`")]
    pub fn release_all(&self) {
        NodeLifecycle::new(self.runtime()).release_all();
    }

    #[deprecated(note = "use `NodeLifecycle::release_all`")]
    pub fn hand_over_all(&self) {
        NodeLifecycle::new(self.runtime()).release_all();
    }

    #[deprecated(note = "use `NodeLifecycle::lease`")]
    pub fn lease(&self) -> Option<LeaseStatus> {
        NodeLifecycle::new(self.runtime()).lease()
    }

    #[deprecated(note = "use `NodeLifecycle::is_displaced`")]
    pub fn is_displaced(&self) -> bool {
        NodeLifecycle::new(self.runtime()).is_displaced()
    }

    #[deprecated(note = "use `NodeLifecycle::live_runs`")]
    pub fn live_runs(&self) -> usize {
        NodeLifecycle::new(self.runtime()).live_runs()
    }

    #[deprecated(note = "use `Runtime::ports`")]
    pub fn parts(&self) -> &RuntimePorts {
        self.runtime().ports()
    }
}
