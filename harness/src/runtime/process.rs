//! A process that a simulation can freeze and kill: its tasks stand still, or vanish at the await that they are at.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// How long a process may need to notice that it was frozen.
const DAZED: Duration = Duration::from_millis(100);

/// One life of a process. Clones are the same process; the default one is never frozen and never dies.
#[derive(Debug, Clone, Default)]
pub(crate) struct Process(Arc<Inner>);

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
    /// Tasks that were to go on meanwhile.
    wakers: Vec<Waker>,
}

impl Process {
    /// Nothing of it moves until it is thawed; its timers go on, as they do for a process that is stopped by a signal.
    pub(crate) fn freeze(&self) {
        let mut frozen = self.0.frozen.lock();
        frozen.times += u32::from(!frozen.now);
        frozen.now = true;
    }

    /// It goes on where it was, and knows nothing of the pause.
    pub(crate) fn thaw(&self) {
        let wakers = {
            let mut frozen = self.0.frozen.lock();
            frozen.now = false;
            frozen.thawed = Some(Instant::now());
            std::mem::take(&mut frozen.wakers)
        };
        wakers.into_iter().for_each(Waker::wake);
    }

    /// It ends at once, with all that it had in memory.
    pub(crate) fn kill(&self) {
        self.0.died.cancel();
        self.thaw();
    }

    /// Returns once it is dead.
    pub(crate) async fn died(&self) {
        self.0.died.cancelled().await;
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.0.died.is_cancelled()
    }

    pub(crate) fn is_frozen(&self) -> bool {
        self.0.frozen.lock().now
    }

    /// Whether it was frozen until a moment ago, and so may not know what it missed.
    pub(crate) fn is_dazed(&self) -> bool {
        self.0
            .frozen
            .lock()
            .thawed
            .is_some_and(|since| since.elapsed() < DAZED)
    }

    /// How often it was frozen.
    pub(crate) fn times_frozen(&self) -> u32 {
        self.0.frozen.lock().times
    }

    /// Work that this process does.
    pub(crate) fn hold<F: Future>(&self, work: F) -> Held<F> {
        Held {
            process: self.clone(),
            work: Some(Box::pin(work)),
        }
    }
}

/// Work of a process. It never ends once the process is dead.
pub(crate) struct Held<F> {
    process: Process,
    work: Option<Pin<Box<F>>>,
}

impl<F: Future> Future for Held<F> {
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
