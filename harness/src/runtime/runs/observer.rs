//! Lifecycle events, for those who act on a run's life besides its viewers.

use async_trait::async_trait;

use super::record::{RunCompletionData, ThreadStatus};
use crate::ids::{RunId, ThreadId};

/// What happened to a run.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum LifecycleKind {
    /// An owner began to work on it.
    RunStarted,
    /// It ended well.
    RunCompleted {
        /// What it added up to.
        completion: RunCompletionData,
        /// The thread's title, if the run saw one.
        title: Option<String>,
    },
    /// It failed, or ran out of time.
    RunFailed {
        /// Why.
        error: String,
        /// What it added up to until then.
        completion: RunCompletionData,
    },
    /// It was cancelled.
    RunCancelled {
        /// What it added up to until then.
        completion: RunCompletionData,
    },
    /// The thread's status changed with it.
    ThreadStatusUpdated(ThreadStatus),
}

/// One event of a run's life. Sent after the durable write and before the terminal stream event.
#[derive(Debug, Clone, PartialEq)]
pub struct RunLifecycleEvent {
    /// The run.
    pub run_id: RunId,
    /// Its thread.
    pub thread_id: ThreadId,
    /// What happened.
    pub kind: LifecycleKind,
}

/// Hears of lifecycle events. It must not fail the run: it deals with its own errors, and it is given a bounded time.
#[async_trait]
pub trait RunObserver: Send + Sync + std::fmt::Debug {
    /// Hears of one event.
    async fn observe(&self, event: &RunLifecycleEvent);
}

/// Hears nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NullObserver;

#[async_trait]
impl RunObserver for NullObserver {
    async fn observe(&self, _event: &RunLifecycleEvent) {}
}
