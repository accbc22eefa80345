//! Keeps CPU-bound work off the threads that drive I/O.
//!
//! Work that takes longer than a millisecond would delay every other task of the process: streams, health checks, leases. Such
//! work runs where blocking is allowed, on at most one thread for each processor at a time, so that the threads that drive I/O
//! keep their share of the processors. [`offloading`] and its like wrap a run or a request, and [`heavy_poll`] announces a long
//! computation within it.
//!
//! On a runtime of a single thread (tests, small tools) there is nothing to protect, and work runs in place.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::sync::LazyLock;
use std::task::Poll;

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::messages::Message;

/// The number of messages from which on work over a conversation counts as heavy: each costs some microseconds.
pub const HEAVY_MESSAGES: usize = 250;
/// The number of bytes of JSON from which on reading or writing it counts as heavy.
pub const HEAVY_BYTES: usize = 256 << 10;

/// One permit for each processor.
static PERMITS: LazyLock<Semaphore> =
    LazyLock::new(|| Semaphore::new(std::thread::available_parallelism().map_or(1, usize::from)));

/// The size of some work, as far as its cost can be estimated before it is done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Size {
    /// Messages or rows.
    pub items: usize,
    /// Bytes of JSON.
    pub bytes: usize,
}

impl Size {
    /// Work over this many messages or rows.
    pub fn items(items: usize) -> Self {
        Self { items, bytes: 0 }
    }

    /// Work over this many bytes of JSON.
    pub fn bytes(bytes: usize) -> Self {
        Self { items: 0, bytes }
    }

    /// Work over all of these messages.
    pub fn messages(messages: &[Message]) -> Self {
        if messages.len() >= HEAVY_MESSAGES {
            return Self::items(messages.len());
        }
        let letters = messages
            .iter()
            .map(Message::size)
            .map(|size| size.narrow.saturating_add(size.wide));
        let letters = letters.fold(0, u64::saturating_add);
        Self {
            items: messages.len(),
            bytes: usize::try_from(letters).unwrap_or(usize::MAX),
        }
    }

    /// Whether the work may take longer than a millisecond.
    pub fn is_heavy(self) -> bool {
        self.items >= HEAVY_MESSAGES || self.bytes >= HEAVY_BYTES
    }
}

/// Which polls of some work run off the I/O threads.
#[derive(Debug, Default)]
struct Polls {
    /// Whether the poll under way does.
    current: Cell<bool>,
    /// Whether the next one does.
    next: Cell<bool>,
    /// Whether one such poll makes all that follow do so.
    lasting: bool,
}

tokio::task_local! {
    static POLLS: Polls;
}

/// Runs asynchronous work in which short and long computations alternate, such as a run: a poll announced by [`heavy_poll`]
/// takes place off the I/O threads.
pub async fn offloading<F: Future>(work: F) -> F::Output {
    offloading_by(Polls::default(), work).await
}

/// Runs asynchronous work of limited length, such as the handling of a request: from the first [`heavy_poll`] on all of it takes
/// place off the I/O threads.
pub async fn offloading_all<F: Future>(work: F) -> F::Output {
    offloading_by(
        Polls {
            lasting: true,
            ..Polls::default()
        },
        work,
    )
    .await
}

/// Prepares work of limited length that continues the present one in another task: it begins off the I/O threads if the present
/// work takes place there.
pub fn continuing<F: Future>(work: F) -> impl Future<Output = F::Output> {
    let is_heavy = POLLS
        .try_with(|polls| polls.current.get())
        .unwrap_or_default();
    offloading_by(
        Polls {
            next: Cell::new(is_heavy),
            lasting: true,
            ..Polls::default()
        },
        work,
    )
}

async fn offloading_by<F: Future>(polls: Polls, work: F) -> F::Output {
    let mut work = std::pin::pin!(work);
    let polling = async move {
        loop {
            let is_heavy = POLLS
                .with(|polls| polls.next.replace(polls.lasting && polls.next.get()))
                && can_offload();
            let permit = if is_heavy { permit().await } else { None };
            let polled = poll_fn(|cx| {
                POLLS.with(|polls| polls.current.set(is_heavy));
                let mut poll = || work.as_mut().poll(cx);
                Poll::Ready(if is_heavy { block(poll) } else { poll() })
            });
            let polled = polled.await;
            drop(permit);
            match polled {
                Poll::Ready(output) => return output,
                // The work has registered the waker.
                Poll::Pending => pending_once().await,
            }
        }
    };
    POLLS.scope(polls, polling).await
}

/// Lets the next poll of the present work run off the I/O threads when `size` is heavy, unless the present one does. Without
/// effect outside of [`offloading`], [`offloading_all`] and [`continuing`].
///
/// The code after it runs there until it waits for something again.
pub async fn heavy_poll(size: Size) {
    if !size.is_heavy() || !can_offload() {
        return;
    }
    let announce = |polls: &Polls| {
        let is_light = !polls.current.get();
        polls.next.set(is_light || polls.next.get());
        is_light
    };
    if POLLS.try_with(announce).unwrap_or_default() {
        poll_fn(|cx| {
            cx.waker().wake_by_ref();
            Poll::Ready(())
        })
        .await;
        pending_once().await;
    }
}

/// Waits until the task is polled again.
async fn pending_once() {
    let mut polled = false;
    poll_fn(|_| {
        if std::mem::replace(&mut polled, true) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await;
}

/// Has another thread take over the I/O of this one while `work` runs.
#[expect(
    clippy::disallowed_methods,
    reason = "the one home of blocking a worker"
)]
fn block<T>(work: impl FnOnce() -> T) -> T {
    tokio::task::block_in_place(work)
}

/// Waits for a processor. The semaphore is never closed.
async fn permit() -> Option<SemaphorePermit<'static>> {
    PERMITS.acquire().await.ok()
}

/// Whether other threads take over the I/O of this one.
fn can_offload() -> bool {
    Handle::try_current()
        .is_ok_and(|runtime| runtime.runtime_flavor() == RuntimeFlavor::MultiThread)
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;
    use crate::runtime::tasks::{TaskKind, Tasks};

    const HEAVY: Size = Size {
        items: HEAVY_MESSAGES,
        bytes: 0,
    };

    /// The heavy poll blocks its thread until another task of the same single worker has run.
    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn other_tasks_progress_beside_a_heavy_poll() {
        let tasks = Tasks::new();
        let (arrive, arrived) = oneshot::channel();
        let (release, released) = std::sync::mpsc::channel::<()>();
        let work = offloading(async move {
            heavy_poll(HEAVY).await;
            arrive.send(()).unwrap();
            released.recv().unwrap();
        });
        let heavy = tasks.spawn(TaskKind::Finish, "heavy", work);
        arrived.await.unwrap();
        tasks
            .spawn(TaskKind::Finish, "light", async move {
                release.send(()).unwrap()
            })
            .await
            .unwrap()
            .unwrap();
        heavy.await.unwrap().unwrap();
    }

    /// Whether the present poll takes place off the I/O threads.
    fn is_off() -> bool {
        POLLS.with(|polls| polls.current.get())
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn a_run_is_off_only_until_it_waits_again() {
        let seen = offloading(async {
            let before = is_off();
            heavy_poll(HEAVY).await;
            let within = is_off();
            tokio::task::yield_now().await;
            heavy_poll(Size::items(HEAVY_MESSAGES - 1)).await;
            (before, within, is_off())
        });
        assert_eq!(seen.await, (false, true, false));
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn a_heavy_request_stays_off_and_hands_that_on() {
        let seen = offloading_all(async {
            let light = continuing(async { is_off() }).await;
            heavy_poll(HEAVY).await;
            tokio::task::yield_now().await;
            (light, is_off(), continuing(async { is_off() }).await)
        });
        assert_eq!(seen.await, (false, true, true));
    }

    #[tokio::test]
    async fn a_runtime_of_one_thread_computes_in_place() {
        heavy_poll(HEAVY).await;
        assert!(
            !offloading(async {
                heavy_poll(HEAVY).await;
                is_off()
            })
            .await
        );
    }
}
