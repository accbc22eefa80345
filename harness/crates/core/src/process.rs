//! Simulated process that can be frozen and killed: its tasks stop, or are dropped at their current
//! await.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Time after a thaw within which a process may not have noticed that it was frozen.
const THAW_GRACE: Duration = Duration::from_millis(100);

/// One lifetime of a process. Clones are the same process; the default one is never frozen and
/// never dies.
#[derive(Debug, Clone, Default)]
pub struct Process(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    frozen: Mutex<Frozen>,
    died: CancellationToken,
}

#[derive(Debug, Default)]
struct Frozen {
    now: bool,
    times: u32,
    thawed: Option<Instant>,
    /// Tasks that became ready while the process was frozen.
    wakers: Vec<Waker>,
}

impl Process {
    /// Freezes all tasks until [`thaw`](Self::thaw). Timers keep running, as for a process that is
    /// stopped by a signal.
    pub fn freeze(&self) {
        let mut frozen = self.0.frozen.lock();
        frozen.times += u32::from(!frozen.now);
        frozen.now = true;
    }

    /// Resumes all tasks where they were; they cannot observe the pause.
    pub fn thaw(&self) {
        let wakers = {
            let mut frozen = self.0.frozen.lock();
            frozen.now = false;
            frozen.thawed = Some(Instant::now());
            std::mem::take(&mut frozen.wakers)
        };
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Kills the process: its tasks are dropped with their memory.
    pub fn kill(&self) {
        self.0.died.cancel();
        self.thaw();
    }

    /// Returns once the process is dead.
    pub async fn died(&self) {
        self.0.died.cancelled().await;
    }

    /// `true` after the process was killed.
    pub fn is_dead(&self) -> bool {
        self.0.died.is_cancelled()
    }

    /// `true` while the process is frozen.
    pub fn is_frozen(&self) -> bool {
        self.0.frozen.lock().now
    }

    /// Reports whether the process was thawed less than `THAW_GRACE` ago, so that it may not have
    /// noticed the pause.
    pub fn is_recently_thawed(&self) -> bool {
        self.0
            .frozen
            .lock()
            .thawed
            .is_some_and(|since| since.elapsed() < THAW_GRACE)
    }

    /// Returns how often the process was frozen.
    pub fn freeze_count(&self) -> u32 {
        self.0.frozen.lock().times
    }

    /// Wraps work that this process executes.
    pub fn wrap<F: Future>(&self, work: F) -> ProcessFuture<F> {
        ProcessFuture {
            process: self.clone(),
            work: Some(Box::pin(work)),
        }
    }
}

/// Future executed by a process. It never completes once the process is dead.
pub struct ProcessFuture<F> {
    process: Process,
    work: Option<Pin<Box<F>>>,
}

impl<F: Future> Future for ProcessFuture<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        if self.process.is_dead() {
            self.work = None;
        }
        {
            let mut frozen = self.process.0.frozen.lock();
            if frozen.now {
                frozen.wakers.push(cx.waker().clone());
                return Poll::Pending;
            }
        }
        self.work
            .as_mut()
            .map_or(Poll::Pending, |work| work.as_mut().poll(cx))
    }
}
