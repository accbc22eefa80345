//! Publishes the ends of orphaned runs to their subscribers and waiting callers, once the ends are
//! durable.

use std::sync::Arc;
use std::time::Duration;

use super::end_commit::{self, EndCommit};
use crate::definition::RunRecord;
use crate::encoding::error_frame;
use crate::kernel::{ActiveRun, FinalizationGuard, RunOutcome, RunRegistry, Runtime};
use crate::ports::WakeSignal;
use crate::stream_bridge::{BridgeError, StreamKey, TerminalKind};
use deerflow_core::ids::RunId;
use deerflow_core::tasks::TaskKind;

/// Retention of the stream of a run that ended before it started.
const UNSTARTED_RETENTION: Duration = Duration::from_secs(60);

/// Finalization of one orphaned run: publishes its end once it is durable.
pub(crate) struct RunFinalizer {
    run: RunRecord,
    /// Handle of the run when the finalization started. A later attempt has another handle.
    active: Option<Arc<ActiveRun>>,
    runtime: Arc<Runtime>,
    _guard: FinalizationGuard,
}

impl RunFinalizer {
    /// Starts a finalization. Returns `None` if another task of this process already finalizes the
    /// attempt. Callers that wait for the run then poll the store.
    pub(crate) fn start(run: &RunRecord, runtime: &Arc<Runtime>) -> Option<Self> {
        let active = runtime.registry.active(&run.run_id);
        let Some(guard) = runtime
            .registry
            .finalization
            .acquire(&run.run_id, run.attempt)
        else {
            detach(&run.run_id, active, &runtime.registry);
            return None;
        };
        Some(Self {
            run: run.clone(),
            active,
            runtime: runtime.clone(),
            _guard: guard,
        })
    }

    /// Publishes the end of the run once it is durable. Runs in its own task, so that a failing
    /// bridge does not block the caller.
    pub(crate) fn finish(self, end: EndCommit, outcome: RunOutcome) {
        match end {
            EndCommit::Stored => {
                let tasks = self.runtime.ports.tasks.clone();
                tasks.spawn(TaskKind::Finish, "run finalizer", async move {
                    self.notify(outcome).await
                });
            }
            EndCommit::Refused => detach(&self.run.run_id, self.active, &self.runtime.registry),
            EndCommit::Deferred(_) => {
                let tasks = self.runtime.ports.tasks.clone();
                tasks.spawn(TaskKind::Service, "run finalizer", async move {
                    if end.stored(&self.runtime.ports).await {
                        self.notify(outcome).await
                    } else {
                        detach(&self.run.run_id, self.active, &self.runtime.registry)
                    }
                });
            }
        }
    }

    async fn notify(self, outcome: RunOutcome) {
        let run_id = &self.run.run_id;
        end_commit::notify_end(
            &self.run,
            outcome.error.as_ref().map(|(_, text)| text.as_str()),
            &self.runtime.ports,
        )
        .await;
        self.end_stream(&outcome).await;
        // Events of an earlier attempt are retained as long as those of other runs.
        let retention = if self.had_earlier_attempt() {
            self.runtime.registry.limits.read().stream_retention
        } else {
            UNSTARTED_RETENTION
        };
        self.runtime.ports.bridge.cleanup(run_id, retention).await;
        if let Some(active) = &self.active {
            self.runtime.registry.active.remove_exactly(run_id, active);
            active.set_status(outcome.status);
            active.finished(outcome);
        }
        self.runtime
            .ports
            .bell
            .ring(WakeSignal::Ended(run_id.clone()));
        self.runtime.registry.dispatch_wake.wake();
    }

    /// Ends the stream. A stream that an earlier attempt opened ends with a terminal event, after
    /// all of its events.
    async fn end_stream(&self, outcome: &RunOutcome) {
        let run_id = &self.run.run_id;
        let (kind, data) = match &outcome.error {
            Some((name, text)) => (
                TerminalKind::Error,
                Some(error_frame(name, text).data.into_bytes()),
            ),
            None if self.had_earlier_attempt() => (TerminalKind::Cancel, None),
            None => return self.runtime.ports.bridge.cancel(run_id).await,
        };
        let key = StreamKey {
            run_id: run_id.clone(),
            attempt: self.run.attempt,
        };
        match self
            .runtime
            .ports
            .bridge
            .publish_terminal(&key, kind, data)
            .await
        {
            Ok(()) | Err(BridgeError::Ended(_) | BridgeError::Closed) => {}
            Err(error) => tracing::warn!(
                %run_id, %error,
                "cannot publish the end of the run to its stream"
            ),
        }
    }

    /// Reports whether an earlier attempt may have published events.
    fn had_earlier_attempt(&self) -> bool {
        self.run.attempt > 1
    }
}

/// Detaches the handle of a run that another task or process ends.
fn detach(run_id: &RunId, active: Option<Arc<ActiveRun>>, registry: &RunRegistry) {
    if let Some(active) = active {
        registry.active.remove_exactly(run_id, &active);
        active.detached();
    }
}

#[cfg(test)]
#[path = "finalizer_tests.rs"]
mod tests;
