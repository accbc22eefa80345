//! Cancels a run when the client that created it goes away.

use std::sync::Arc;

use harness::ids::{RunId, ThreadId};
use harness::runtime::actor_context::{ActorContext, scope};
use harness::runtime::runs::{CancelAction, RunError, RunsFacade};
use harness::runtime::tasks::{TaskKind, Tasks};

/// Held by a response's body: dropped before it was disarmed, it cancels the run at once.
#[derive(Debug)]
pub struct DisconnectGuard {
    armed: Option<Armed>,
}

#[derive(Debug)]
struct Armed {
    runs: Arc<RunsFacade>,
    tasks: Tasks,
    actor: ActorContext,
    thread: ThreadId,
    run: RunId,
}

impl DisconnectGuard {
    /// A guard for a run of `actor`.
    pub fn new(runs: Arc<RunsFacade>, tasks: Tasks, actor: ActorContext, thread: ThreadId, run: RunId) -> Self {
        Self { armed: Some(Armed { runs, tasks, actor, thread, run }) }
    }

    /// The response is complete, or the server ends it: nobody went away.
    pub fn disarm(&mut self) {
        self.armed = None;
    }
}

impl Drop for DisconnectGuard {
    fn drop(&mut self) {
        let Some(Armed { runs, tasks, actor, thread, run }) = self.armed.take() else { return };
        // The body is dropped by the connection, outside of any actor's scope.
        tasks.clone().spawn(
            TaskKind::Finish,
            "cancel the run of a client that left",
            scope(actor, async move {
                match runs.cancel(Some(&thread), &run, CancelAction::Interrupt, false).await {
                    Ok(_) | Err(RunError::NotCancellable { .. } | RunError::NotFound(_)) => {}
                    Err(error) => tracing::warn!(run_id = %run, %error, "a run whose client left could not be cancelled"),
                }
            }),
        );
    }
}
