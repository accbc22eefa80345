//! Cancels a run when the client that created it goes away.

use std::sync::Arc;

use harness::ids::{RunId, ThreadId};
use harness::runtime::actor_context::{ActorContext, scope};
use harness::runtime::runs::{CancelAction, RunError, RunRecord, RunsFacade};
use harness::runtime::tasks::{TaskKind, Tasks};
use tokio_util::sync::CancellationToken;

/// Held by a response's body: dropped while it is armed, it cancels the run at once.
#[derive(Debug)]
pub struct DisconnectGuard {
    armed: bool,
    watched: Option<Watched>,
}

#[derive(Debug)]
struct Watched {
    runs: Arc<RunsFacade>,
    tasks: Tasks,
    actor: ActorContext,
    thread: ThreadId,
    run: RunId,
    shutdown: CancellationToken,
}

impl DisconnectGuard {
    /// A guard for a run of `actor`, armed at once. From `shutdown` on it is the server that cuts connections.
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
            watched: Some(Watched {
                runs,
                tasks,
                actor,
                thread,
                run,
                shutdown,
            }),
        }
    }

    /// The same guard, armed only once its body is read: the answer to a `HEAD` never is.
    #[must_use]
    pub fn once_read(mut self) -> Self {
        self.armed = false;
        self
    }

    /// The body is read.
    pub fn arm(&mut self) {
        self.armed = true;
    }

    /// The response is complete, or the server ends it: nobody went away.
    pub fn disarm(&mut self) {
        self.watched = None;
    }
}

impl Drop for DisconnectGuard {
    fn drop(&mut self) {
        let Some(Watched {
            runs,
            tasks,
            actor,
            thread,
            run,
            shutdown,
        }) = self.watched.take().filter(|_| self.armed)
        else {
            return;
        };
        if shutdown.is_cancelled() {
            return;
        }
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
