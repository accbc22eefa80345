//! Keeps CPU-bound work off the threads that drive I/O.
//!
//! Work that takes longer than a millisecond would delay the other tasks of the process: streams,
//! health checks, leases. Such work runs on threads that may block, on at most one per processor at
//! a time, so that the I/O threads still get processor time. Waiting users receive permits in turn.
//! [`offloading`], [`offloading_all`] and [`continuing`] wrap a run or a request, and [`heavy_poll`]
//! announces a long computation within it.
//!
//! On a single-threaded runtime (tests, small tools) work is not moved.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::sync::LazyLock;
use std::task::Poll;

use tokio::runtime::{Handle, RuntimeFlavor};

use crate::actor_context::effective_user_id;
use crate::fair_permits::{FairPermit, FairPermits};
use crate::messages::Message;
use crate::tasks::requeue;

/// Minimum number of messages for which work over a conversation counts as heavy: each message
/// takes some microseconds.
pub const HEAVY_MESSAGES: usize = 250;
/// Minimum number of JSON bytes for which parsing or serializing counts as heavy.
pub const HEAVY_BYTES: usize = 256 << 10;
/// Maximum number of messages from which the size of a conversation is estimated.
const SAMPLES: usize = 64;
/// Number of messages whose forms are in memory that cost as much as one whose forms are not.
const SENT_PER_UNSENT: usize = 16;

/// One permit per processor, which waiting users receive in turns.
static PERMITS: LazyLock<FairPermits> = LazyLock::new(|| {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    FairPermits::new("computations", processors)
});

/// Size of a computation, from which its cost is estimated in advance.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Size {
    /// Number of messages or rows.
    pub items: usize,
    /// Number of JSON bytes.
    pub bytes: usize,
}

impl Size {
    /// Returns the size of work over this many messages or rows.
    pub fn items(items: usize) -> Self {
        Self { items, bytes: 0 }
    }

    /// Returns the size of work over this many bytes of JSON.
    pub fn bytes(bytes: usize) -> Self {
        Self { items: 0, bytes }
    }

    /// Returns the size of work over all of these messages, estimated from some of them in long
    /// lists. Messages that were sent to a model have all their forms in memory: work over them
    /// copies texts and counts less.
    pub fn messages(messages: &[Message]) -> Self {
        let distance = messages.len().div_ceil(SAMPLES).max(1);
        let (mut chars, mut are_sent) = (0_u64, true);
        for message in messages.iter().step_by(distance) {
            let size = message.size();
            chars = chars.saturating_add(size.narrow).saturating_add(size.wide);
            are_sent &= message.was_sent();
        }
        let divisor = if are_sent { SENT_PER_UNSENT } else { 1 };
        let bytes = usize::try_from(chars).unwrap_or(usize::MAX);
        Self {
            items: messages.len() / divisor,
            bytes: bytes.saturating_mul(distance) / divisor,
        }
    }

    /// Reports whether the work may take longer than a millisecond.
    pub fn is_heavy(self) -> bool {
        self.items >= HEAVY_MESSAGES || self.bytes >= HEAVY_BYTES
    }
}

/// Marks the polls of a future that run off the I/O threads.
#[derive(Debug, Default)]
struct Polls {
    /// `true` if the current poll runs off the I/O threads.
    current: Cell<bool>,
    /// `true` if the next poll is to run off the I/O threads.
    next: Cell<bool>,
    /// User of the announced poll, who may be bound within the work only.
    user: RefCell<String>,
    /// `true` if all polls after the first offloaded one are offloaded as well.
    lasting: bool,
}

tokio::task_local! {
    static POLLS: Polls;
}

/// Runs asynchronous work in which short and long computations alternate, such as a run: a poll
/// announced by [`heavy_poll`] runs off the I/O threads.
pub fn offloading<F: Future>(work: F) -> impl Future<Output = F::Output> {
    offloading_by(Polls::default(), work)
}

/// Runs asynchronous work of limited length, such as the handling of a request: from the first
/// [`heavy_poll`] on, all polls run off the I/O threads.
pub fn offloading_all<F: Future>(work: F) -> impl Future<Output = F::Output> {
    offloading_by(
        Polls {
            lasting: true,
            ..Polls::default()
        },
        work,
    )
}

/// Wraps work of limited length that continues the current work in another task: it starts off the
/// I/O threads if the current poll runs off them.
pub fn continuing<F: Future>(work: F) -> impl Future<Output = F::Output> {
    let is_heavy = POLLS
        .try_with(|polls| polls.current.get())
        .unwrap_or_default();
    offloading_by(
        Polls {
            next: Cell::new(is_heavy),
            user: RefCell::new(effective_user_id()),
            lasting: true,
            ..Polls::default()
        },
        work,
    )
}

/// Wraps `work` in a small future, however large `work` is: an `async fn` stores its argument twice,
/// which nested wrappers multiply.
fn offloading_by<F: Future>(polls: Polls, work: F) -> impl Future<Output = F::Output> {
    let mut work = Box::pin(work);
    let polling = async move {
        loop {
            let is_heavy = POLLS
                .with(|polls| polls.next.replace(polls.lasting && polls.next.get()))
                && can_offload();
            let permit = if is_heavy { Some(permit().await) } else { None };
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
    POLLS.scope(polls, polling)
}

/// Moves the next poll of the current work off the I/O threads if `size` is heavy, unless the
/// current poll already runs there. Has no effect outside of [`offloading`], [`offloading_all`] and
/// [`continuing`].
///
/// The code after the call runs there until its next await.
pub async fn heavy_poll(size: Size) {
    if !size.is_heavy() || !can_offload() {
        return;
    }
    let announce = |polls: &Polls| {
        let is_light = !polls.current.get();
        polls.next.set(is_light || polls.next.get());
        polls.user.replace(effective_user_id());
        is_light
    };
    if POLLS.try_with(announce).unwrap_or_default() {
        requeue().await;
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

/// Lets another thread take over the I/O of this one while `work` runs.
#[expect(
    clippy::disallowed_methods,
    reason = "the one home of blocking a worker"
)]
fn block<T>(work: impl FnOnce() -> T) -> T {
    tokio::task::block_in_place(work)
}

/// Waits for a permit of the user of the announced poll.
async fn permit() -> FairPermit {
    let user = POLLS.with(|polls| polls.user.borrow().clone());
    PERMITS.acquire(&user).await
}

/// Reports whether the runtime has other threads that can take over the I/O of this one.
fn can_offload() -> bool {
    Handle::try_current()
        .is_ok_and(|runtime| runtime.runtime_flavor() == RuntimeFlavor::MultiThread)
}

#[cfg(test)]
#[path = "compute_tests.rs"]
mod tests;
