//! Lifecycle events of runs, and the port that receives them.

use std::time::Duration;

use async_trait::async_trait;

use crate::definition::{RunCompletionData, RunRecord, ThreadStatus};
use deerflow_core::ids::{RunId, ThreadId};

/// Kind of a lifecycle event.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum LifecycleKind {
    /// An attempt started to execute the run.
    RunStarted,
    /// The run succeeded.
    RunCompleted {
        /// Usage and messages of the run.
        completion: RunCompletionData,
        /// Title of the thread, if it has one.
        title: Option<String>,
    },
    /// The run failed or timed out.
    RunFailed {
        /// Error text.
        error: String,
        /// Usage and messages of the run until then.
        completion: RunCompletionData,
    },
    /// The run was cancelled.
    RunCancelled {
        /// Usage and messages of the run until then.
        completion: RunCompletionData,
    },
    /// This process stopped executing the run without ending it: the run was released, taken over,
    /// ended by another process or deleted, or its end could not be stored.
    RunLeft,
    /// The status of the thread changed with the run.
    ThreadStatusUpdated(ThreadStatus),
}

/// Lifecycle event of a run. Sent after the durable write and before the terminal stream event.
#[derive(Debug, Clone, PartialEq)]
pub struct RunLifecycleEvent {
    /// Id of the run.
    pub run_id: RunId,
    /// Id of its thread.
    pub thread_id: ThreadId,
    /// Attempt that the event belongs to, from 1.
    pub attempt: u32,
    /// Kind and details of the event.
    pub kind: LifecycleKind,
}

/// Timeout of an observer call.
const OBSERVE_TIMEOUT: Duration = Duration::from_secs(5);

impl RunLifecycleEvent {
    pub(crate) fn of(run: &RunRecord, kind: LifecycleKind) -> Self {
        Self {
            run_id: run.run_id.clone(),
            thread_id: run.thread_id.clone(),
            attempt: run.attempt,
            kind,
        }
    }

    /// Notifies the observer and waits for at most [`OBSERVE_TIMEOUT`].
    pub(crate) async fn notify(self, observer: &dyn RunObserver) {
        if tokio::time::timeout(OBSERVE_TIMEOUT, observer.observe(&self))
            .await
            .is_err()
        {
            tracing::warn!(event = ?self, "the run observer timed out");
        }
    }
}

/// Observer of lifecycle events. It must handle its own errors, so that it never fails a run. Each
/// call has a timeout.
///
/// ```
/// use std::sync::atomic::{AtomicUsize, Ordering};
///
/// use async_trait::async_trait;
/// use deerflow_runtime::runs::{LifecycleKind, RunLifecycleEvent, RunObserver};
///
/// /// Counts failed runs.
/// #[derive(Debug, Default)]
/// struct Failures(AtomicUsize);
///
/// #[async_trait]
/// impl RunObserver for Failures {
///     async fn observe(&self, event: &RunLifecycleEvent) {
///         if matches!(event.kind, LifecycleKind::RunFailed { .. }) {
///             self.0.fetch_add(1, Ordering::Relaxed);
///         }
///     }
/// }
/// ```
#[async_trait]
pub trait RunObserver: Send + Sync + std::fmt::Debug {
    /// Handles one event.
    async fn observe(&self, event: &RunLifecycleEvent);
}

/// Observer that ignores all events.
#[derive(Debug, Clone, Copy, Default)]
pub struct NullObserver;

#[async_trait]
impl RunObserver for NullObserver {
    async fn observe(&self, _event: &RunLifecycleEvent) {}
}
