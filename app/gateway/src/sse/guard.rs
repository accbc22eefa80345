//! Cancels a run when its creating client disconnects.

use std::sync::Arc;

use harness::ids::{RunId, ThreadId};
use harness::runtime::actor_context::{ActorContext, scope};
use harness::runtime::runs::{CancelAction, RunError, RunRecord, RunsFacade};
use harness::runtime::tasks::{TaskKind, Tasks};
use tokio_util::sync::CancellationToken;

/// Guard in a response's body: if it is dropped while armed, it cancels the run.
#[derive(Debug)]
pub struct DisconnectGuard {
    armed: bool,
    guarded_run: Option<GuardedRun>,
}

#[derive(Debug)]
struct GuardedRun {
    runs: Arc<RunsFacade>,
    tasks: Tasks,
    actor: ActorContext,
    thread: ThreadId,
    run: RunId,
    shutdown: CancellationToken,
}

impl DisconnectGuard {
    /// A guard for a run of `actor`, armed at once. It does not cancel the run after `shutdown`,
    /// because the server itself closes the connections then.
    pub fn new(
        runs: Arc<RunsFacade>,
        tasks: Tasks,
        shutdown: CancellationToken,
        actor: ActorContext,
        run: &RunRecord,
    ) -> Self {
        let (thread, run) = (run.thread_id.clone(), run.run_id.clone());
        Self {
            armed: true,
            guarded_run: Some(GuardedRun {
                runs,
                tasks,
                actor,
                thread,
                run,
                shutdown,
            }),
        }
    }

    /// Arms the guard only when its body is read, because the body of a `HEAD` response is dropped
    /// unread.
    #[must_use]
    pub fn armed_when_read(mut self) -> Self {
        self.armed = false;
        self
    }

    /// Arms the guard.
    pub fn arm(&mut self) {
        self.armed = true;
    }

    /// Disarms the guard, because the response is complete or the server ends it.
    pub fn disarm(&mut self) {
        self.guarded_run = None;
    }
}

impl Drop for DisconnectGuard {
    fn drop(&mut self) {
        let Some(GuardedRun {
            runs,
            tasks,
            actor,
            thread,
            run,
            shutdown,
        }) = self.guarded_run.take().filter(|_| self.armed)
        else {
            return;
        };
        if shutdown.is_cancelled() {
            return;
        }
        // The connection drops the body outside of any actor's scope.
        tasks.clone().spawn(
            TaskKind::Finish,
            "cancel the run of a disconnected client",
            scope(actor, async move {
                match runs.cancel(Some(&thread), &run, CancelAction::Interrupt, false).await {
                    Ok(_) | Err(RunError::NotCancellable { .. } | RunError::NotFound(_)) => {}
                    Err(error) => tracing::warn!(run_id = %run, %error, "failed to cancel the run of a disconnected client"),
                }
            }),
        );
    }
}
