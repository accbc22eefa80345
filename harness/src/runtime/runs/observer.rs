//! Lifecycle events, for those who act on a run's life besides its viewers.

use std::time::Duration;

use async_trait::async_trait;

use super::record::{RunCompletionData, RunRecord, ThreadStatus};
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
    /// Its execution here is over and has not ended it: it was given back, taken by another process, deleted, or broke off.
    RunLeft,
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
    /// Which attempt at it.
    pub attempt: u32,
    /// What happened.
    pub kind: LifecycleKind,
}

/// The longest that an observer may take.
const PATIENCE: Duration = Duration::from_secs(5);

impl RunLifecycleEvent {
    pub(super) fn of(run: &RunRecord, kind: LifecycleKind) -> Self {
        Self {
            run_id: run.run_id.clone(),
            thread_id: run.thread_id.clone(),
            attempt: run.attempt,
            kind,
        }
    }

    /// Tells the observer, who gets a bounded time.
    pub(super) async fn tell(self, observer: &dyn RunObserver) {
        if tokio::time::timeout(PATIENCE, observer.observe(&self))
            .await
            .is_err()
        {
            tracing::warn!(event = ?self, "the run observer took too long");
        }
    }
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
