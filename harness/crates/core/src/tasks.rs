//! The only module that spawns tasks. Every task has an actor, a span, a cancellation token, and a
//! kind that determines how shutdown treats it.

use std::future::{Future, poll_fn};
use std::panic::AssertUnwindSafe;
use std::task::Poll;

use futures_util::FutureExt;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument;

use super::actor_context;

/// Purpose of a task, which determines the effect of cancelling or losing it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum TaskKind {
    /// Executes a run. Shutdown waits for it; a panic becomes the run's error.
    Run,
    /// Runs for the lifetime of the process (writers, sweepers). Shutdown cancels it; a panic is
    /// logged.
    Service,
    /// Completes work that must not be lost (flush, clean-up). Shutdown waits for it.
    Finish,
    /// Shows other processes that this one is alive (leases, health checks). Runs on the control
    /// runtime if there is one, so that other tasks do not delay it. Shutdown cancels it; a panic
    /// is logged.
    Control,
}

/// Runtimes of a process that separates control tasks from all others.
#[derive(Debug, Clone)]
struct Runtimes {
    main: Handle,
    control: Handle,
}

/// A set of tasks that are cancelled and awaited together.
#[derive(Debug, Clone, Default)]
pub struct Tasks {
    tracker: TaskTracker,
    token: CancellationToken,
    runtimes: Option<Runtimes>,
    /// Process of a simulation that executes the tasks.
    #[cfg(any(test, feature = "testkit"))]
    process: super::process::Process,
}

/// A task ended by panicking.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the task panicked: {0}")]
pub struct TaskPanicked(pub String);

impl Tasks {
    /// Creates an empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the same set with control tasks on `control` and all others on the current runtime,
    /// whichever of the two spawns them.
    #[must_use]
    pub fn with_control(self, control: Handle) -> Self {
        Self {
            runtimes: Some(Runtimes {
                main: Handle::current(),
                control,
            }),
            ..self
        }
    }

    /// Creates an empty set on the same runtimes.
    pub fn sibling(&self) -> Self {
        Self {
            runtimes: self.runtimes.clone(),
            ..Self::default()
        }
    }

    /// Reports whether control tasks have a separate runtime.
    pub fn has_control(&self) -> bool {
        self.runtimes.is_some()
    }

    /// Polls `work` within the context of the control runtime, if there is one: the connections and
    /// timers that it creates are driven there.
    pub async fn within_control<F: Future>(&self, work: F) -> F::Output {
        let mut work = std::pin::pin!(work);
        poll_fn(|cx| {
            let _entered = self
                .runtimes
                .as_ref()
                .map(|runtimes| runtimes.control.enter());
            work.as_mut().poll(cx)
        })
        .await
    }

    /// Creates an empty set whose tasks freeze and die with `process`.
    #[cfg(any(test, feature = "testkit"))]
    pub fn within(process: super::process::Process) -> Self {
        Self {
            process,
            ..Self::default()
        }
    }

    /// Returns the token that shutdown cancels. Services stop on it; runs are stopped by their
    /// supervisor.
    pub fn token(&self) -> &CancellationToken {
        &self.token
    }

    /// Spawns `work` with the current actor and span. A panic is logged and returned, never
    /// propagated.
    pub fn spawn<F>(
        &self,
        kind: TaskKind,
        name: &'static str,
        work: F,
    ) -> JoinHandle<Result<F::Output, TaskPanicked>>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        // Boxed: a task's cell is aligned to cache lines, and allocators serve large aligned cells
        // slowly.
        let work = Box::pin(guarded(kind, name, work)).in_current_span();
        #[cfg(any(test, feature = "testkit"))]
        let work = self.process.wrap(work);
        let tracked = self.tracker.track_future(work);
        let runtime = self.runtime_of(kind);
        match actor_context::current_shared() {
            Some(actor) => runtime.spawn(actor_context::scope_shared(actor, tracked)),
            None => runtime.spawn(tracked),
        }
    }

    fn runtime_of(&self, kind: TaskKind) -> Handle {
        match (&self.runtimes, kind) {
            (Some(runtimes), TaskKind::Control) => runtimes.control.clone(),
            (Some(runtimes), _) => runtimes.main.clone(),
            (None, _) => Handle::current(),
        }
    }

    /// Cancels the services and waits until every task has ended. The caller bounds the wait.
    pub async fn shut_down(&self) {
        self.token.cancel();
        self.tracker.close();
        self.tracker.wait().await;
    }

    /// Returns the number of running tasks.
    pub fn alive(&self) -> usize {
        self.tracker.len()
    }
}

/// Catches a panic of `work`. Not an `async fn`, which would store `work` twice.
fn guarded<F: Future>(
    kind: TaskKind,
    name: &'static str,
    work: F,
) -> impl Future<Output = Result<F::Output, TaskPanicked>> {
    AssertUnwindSafe(work).catch_unwind().map(move |ended| {
        ended.map_err(|panic| {
            let text = panic_text(panic.as_ref());
            tracing::error!(task = name, ?kind, panic = %text, "task panicked");
            TaskPanicked(text)
        })
    })
}

/// Moves the current task to the end of its worker's queue, from which other workers can take it.
/// Under load `tokio::task::yield_now` waits longer: until the worker polls for I/O.
pub async fn requeue() {
    let mut is_requeued = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut is_requeued, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// Returns the message of a panic, if it has one.
pub fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no message".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::actor_context::{ActorContext, effective_user_id, scope};

    #[tokio::test]
    async fn a_spawned_task_keeps_the_actor() {
        let tasks = Tasks::new();
        let tasks = &tasks;
        let spawn = async move {
            tasks
                .spawn(TaskKind::Finish, "t", async { effective_user_id() })
                .await
        };
        let task = scope(ActorContext::user("ann"), spawn).await;
        assert_eq!(task.unwrap(), Ok("ann".to_owned()));
    }

    #[test]
    fn control_tasks_progress_while_all_workers_are_blocked() {
        let build = || {
            tokio::runtime::Builder::new_multi_thread()
                .worker_threads(1)
                .enable_all()
                .build()
                .unwrap()
        };
        let (main, control) = (build(), build());
        let (release, released) = std::sync::mpsc::channel::<()>();
        let done = main.block_on(async {
            let tasks = Tasks::new().with_control(control.handle().clone());
            let blocked = tasks.spawn(TaskKind::Service, "blocks the only worker", async move {
                released.recv().is_ok()
            });
            let freed = tasks.spawn(TaskKind::Control, "frees it", {
                let tasks = tasks.clone();
                async move {
                    release.send(()).unwrap();
                    tasks
                        .spawn(TaskKind::Finish, "spawned from control", async {
                            Handle::current().id()
                        })
                        .await
                }
            });
            (
                blocked.await.unwrap(),
                freed.await.unwrap().unwrap().unwrap(),
            )
        });
        assert_eq!(done, (Ok(true), Ok(main.handle().id())));
    }

    #[tokio::test]
    async fn a_panic_is_returned_and_the_set_still_shuts_down() {
        let tasks = Tasks::new();
        let task = tasks.spawn(TaskKind::Run, "t", async { panic!("boom") });
        let ended: Result<(), _> = task.await.unwrap();
        assert_eq!(ended, Err(TaskPanicked("boom".to_owned())));
        tasks.shut_down().await;
        assert_eq!(tasks.alive(), 0);
    }
}
