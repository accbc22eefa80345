//! Streams of threads.

use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::BoxStream;

use super::visible_runs::owner;
use crate::kernel::{RunError, Runtime};
use crate::streaming::{ThreadCursor, ThreadItem, ThreadRunItem, thread_events, thread_service};
use deerflow_core::ids::ThreadId;

/// Streams of all runs of a thread.
#[derive(Debug, Clone)]
pub struct ThreadStreams {
    runtime: Arc<Runtime>,
}

impl ThreadStreams {
    /// Creates the handle of a runtime.
    pub fn new(runtime: &Arc<Runtime>) -> Self {
        Self {
            runtime: runtime.clone(),
        }
    }

    /// Subscribes to all runs of a thread, one after the other. `heartbeat` is the maximum interval
    /// between two items. The stream ends at shutdown.
    pub async fn follow(
        &self,
        thread: &ThreadId,
        from: ThreadCursor,
        heartbeat: Duration,
    ) -> Result<BoxStream<'static, ThreadItem>, RunError> {
        Ok(thread_events::follow(thread.clone(), owner(), from, heartbeat, &self.runtime).await?)
    }

    /// Subscribes to the runs of a thread and their events, like [`ThreadStreams::follow`]. The
    /// items also name the opened runs and those whose events are no longer available.
    pub async fn follow_runs(
        &self,
        thread: &ThreadId,
        from: ThreadCursor,
        heartbeat: Duration,
    ) -> Result<BoxStream<'static, ThreadRunItem>, RunError> {
        let (thread, owner) = (thread.clone(), owner());
        Ok(thread_service::follow_runs(thread, owner, from, heartbeat, &self.runtime).await?)
    }
}
