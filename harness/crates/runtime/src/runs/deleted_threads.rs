//! Release of streams and states of deleted threads.

use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt, stream};

use crate::kernel::Runtime;
use crate::ports::RunListQuery;
use deerflow_core::actor_context::Owner;
use deerflow_core::ids::{RunId, ThreadId};

/// Maximum number of streams that are removed concurrently.
const CONCURRENT_REMOVALS: usize = 16;

/// Releases the streams of deleted threads' runs, and the states that this process retains for the
/// next runs of the threads. Every deletion of a thread from the stores is followed by a release:
/// without it, both stay in memory until their retention ends.
#[derive(Debug, Clone)]
pub struct DeletedThreads {
    runtime: Arc<Runtime>,
}

impl DeletedThreads {
    /// Creates the handle of a runtime.
    pub fn new(runtime: &Arc<Runtime>) -> Self {
        Self {
            runtime: runtime.clone(),
        }
    }

    /// Lists the runs of a thread that is about to be deleted, except those whose streams have
    /// expired. If the store fails, the failure is logged and runs are missing from the list.
    pub async fn runs_of(&self, thread: &ThreadId, owner: &Owner) -> Vec<RunId> {
        let retention = self.runtime.registry.limits.read().stream_retention;
        let now = self.runtime.ports.clock.now();
        let mut runs = Vec::new();
        let mut query = RunListQuery::default();
        loop {
            let page = match self.runtime.ports.query.list(thread, &query, owner).await {
                Ok(page) => page,
                Err(error) => {
                    tracing::warn!(
                        thread_id = %thread, %error,
                        "cannot list the runs of a thread; their streams stay until they expire"
                    );
                    return runs;
                }
            };
            query.offset += query.limit;
            let listed = runs.len();
            let retained = page.into_iter().filter(|run| {
                let age = now.signed_duration_since(run.updated_at).to_std();
                age.is_ok_and(|age| age < retention) || age.is_err()
            });
            runs.extend(retained.map(|run| run.run_id));
            // The newest runs are listed first, so those of the next pages ended even earlier. A
            // page may be short before the end, because damaged rows are omitted.
            if runs.len() == listed {
                return runs;
            }
        }
    }

    /// Removes the streams of these runs from the bridge, and the retained states of the threads.
    /// Viewers that are reading an ended stream receive the rest of it; later ones find no stream.
    /// An error of the bridge is logged.
    pub async fn release(&self, threads: impl IntoIterator<Item = &ThreadId>, runs: &[RunId]) {
        for thread in threads {
            self.runtime.registry.heads.remove(thread);
        }
        let bridge = &self.runtime.ports.bridge;
        stream::iter(runs)
            .for_each_concurrent(CONCURRENT_REMOVALS, |run| {
                bridge.cleanup(run, Duration::ZERO)
            })
            .await;
    }
}
