//! Queue of a run: its agent and its tools write to it, and the run reads it.
//!
//! A channel of tokio allocates blocks of 32 values, which is about 9 KB for events. A run usually has a
//! few values queued, and thousands of runs wait at the same time.

use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

use parking_lot::Mutex;
use tokio::task::coop;

/// Number of values whose memory an empty queue retains.
const MAX_RETAINED: usize = 4;

/// Creates an empty queue.
pub(crate) fn run_queue<T>() -> (QueueSender<T>, QueueReceiver<T>) {
    let queue = Arc::new(Mutex::new(Queue {
        values: VecDeque::new(),
        receiver: None,
        senders: 1,
        is_closed: false,
    }));
    (QueueSender(Arc::clone(&queue)), QueueReceiver(queue))
}

struct Queue<T> {
    values: VecDeque<T>,
    /// Waker of the receiver, while it waits.
    receiver: Option<Waker>,
    senders: usize,
    /// The receiver no longer exists.
    is_closed: bool,
}

impl<T> Queue<T> {
    fn pop(&mut self) -> Option<T> {
        let value = self.values.pop_front();
        if self.values.is_empty() && self.values.capacity() > MAX_RETAINED {
            self.values = VecDeque::new();
        }
        value
    }
}

/// Writes to the queue. Clones are cheap; sending never waits.
pub(crate) struct QueueSender<T>(Arc<Mutex<Queue<T>>>);

impl<T> QueueSender<T> {
    /// Appends a value. It is dropped if the receiver no longer exists.
    pub(crate) fn send(&self, value: T) {
        let receiver = {
            let mut queue = self.0.lock();
            if queue.is_closed {
                return;
            }
            queue.values.push_back(value);
            queue.receiver.take()
        };
        if let Some(receiver) = receiver {
            receiver.wake();
        }
    }
}

impl<T> Clone for QueueSender<T> {
    fn clone(&self) -> Self {
        self.0.lock().senders += 1;
        Self(Arc::clone(&self.0))
    }
}

impl<T> Drop for QueueSender<T> {
    fn drop(&mut self) {
        let receiver = {
            let mut queue = self.0.lock();
            queue.senders -= 1;
            if queue.senders == 0 {
                queue.receiver.take()
            } else {
                None
            }
        };
        if let Some(receiver) = receiver {
            receiver.wake();
        }
    }
}

impl<T> fmt::Debug for QueueSender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QueueSender").finish_non_exhaustive()
    }
}

/// Reads the values in the order in which they were sent.
pub struct QueueReceiver<T>(Arc<Mutex<Queue<T>>>);

impl<T> QueueReceiver<T> {
    /// Returns the next value, or `None` after the last one if no sender exists. Cancel safe.
    pub async fn recv(&mut self) -> Option<T> {
        poll_fn(|cx| self.poll_recv(cx)).await
    }

    /// Returns the next value, or `None` if the queue is empty, with or without senders.
    pub fn try_recv(&mut self) -> Option<T> {
        self.0.lock().pop()
    }

    /// Returns the next value if there is one. Removes the waker of an earlier
    /// [`poll_recv`](Self::poll_recv): further values wake no task.
    pub(super) fn take_unwatched(&mut self) -> Option<T> {
        // The waker is dropped without the lock, because it may own the last reference to a task.
        let (value, _waker) = {
            let mut queue = self.0.lock();
            (queue.pop(), queue.receiver.take())
        };
        value
    }

    /// Polls for the next value. While there is none, the next value or the end of the last sender
    /// wakes the task.
    pub fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<Option<T>> {
        let progress = ready!(coop::poll_proceed(cx));
        let (received, _waker) = {
            let mut queue = self.0.lock();
            match queue.pop() {
                Some(value) => (Poll::Ready(Some(value)), queue.receiver.take()),
                None if queue.senders == 0 => (Poll::Ready(None), queue.receiver.take()),
                None => (Poll::Pending, queue.receiver.replace(cx.waker().clone())),
            }
        };
        if received.is_ready() {
            progress.made_progress();
        }
        received
    }
}

impl<T> Drop for QueueReceiver<T> {
    fn drop(&mut self) {
        // Values may own senders of this queue, so they are dropped without the lock.
        let _rest = {
            let mut queue = self.0.lock();
            queue.is_closed = true;
            (std::mem::take(&mut queue.values), queue.receiver.take())
        };
    }
}

impl<T> fmt::Debug for QueueReceiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QueueReceiver").finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "run_queue_tests.rs"]
mod tests;
