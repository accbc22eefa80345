//! Notifies all listeners of a stream: directly if they are few, in groups if they are many.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::sync::futures::OwnedNotified;

use deerflow_core::tasks::{TaskKind, Tasks};

/// Number of listeners that are woken before other tasks may run; their first polls take a few
/// hundred microseconds.
const GROUP: usize = 32;

/// Notifies the viewers of one stream about its changes.
///
/// Waking thousands of viewers at once would fill the scheduler's queues, and the producing run
/// would be scheduled after all of them. Groups are therefore woken one after the other, with a
/// yield in between. Changes during a round are notified together in the next round.
#[derive(Debug, Clone)]
pub struct FanOut(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    tasks: Tasks,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    groups: Vec<Arc<Group>>,
    /// `true` while a task notifies group after group.
    running: bool,
    /// `true` if a change happened since the last round began.
    changed: bool,
}

#[derive(Debug, Default)]
struct Group {
    notify: Arc<Notify>,
    members: AtomicUsize,
}

impl FanOut {
    /// Creates a fan-out without listeners. Rounds over several groups run in `tasks`.
    pub fn new(tasks: Tasks) -> Self {
        Self(Arc::new(Inner {
            tasks,
            state: Mutex::default(),
        }))
    }

    /// Registers a listener for every change after this call.
    pub fn listen(&self) -> Listener {
        let mut state = self.0.state.lock();
        let open_group = state
            .groups
            .iter()
            .find(|group| group.members.load(Ordering::Relaxed) < GROUP)
            .cloned();
        let group = open_group.unwrap_or_else(|| {
            let group = Arc::<Group>::default();
            state.groups.push(group.clone());
            group
        });
        // Members are added under the lock only, so a group never exceeds its size.
        group.members.fetch_add(1, Ordering::Relaxed);
        Listener {
            change: Box::pin(group.notify.clone().notified_owned()),
            group,
        }
    }

    /// Notifies all listeners of a change. The caller must not hold a lock that a listener takes.
    pub fn notify(&self) {
        let mut state = self.0.state.lock();
        match &*state.groups {
            [] => {}
            [only] => {
                let notify = only.notify.clone();
                drop(state);
                notify.notify_waiters();
            }
            _ => {
                state.changed = true;
                if !std::mem::replace(&mut state.running, true) {
                    drop(state);
                    self.0
                        .tasks
                        .spawn(TaskKind::Finish, "fan-out", self.clone().run_rounds());
                }
            }
        }
    }

    #[doc(hidden)]
    #[deprecated(note = "use `notify`")]
    pub fn tell(&self) {
        self.notify();
    }

    async fn run_rounds(self) {
        while let Some(groups) = self.next_round() {
            for group in groups {
                group.notify.notify_waiters();
                tokio::task::yield_now().await;
            }
        }
    }

    /// Returns the groups to notify; `None` if no change is pending.
    fn next_round(&self) -> Option<Vec<Arc<Group>>> {
        let mut state = self.0.state.lock();
        state.running = std::mem::take(&mut state.changed);
        if !state.running {
            return None;
        }
        // Groups without members are removed.
        state
            .groups
            .retain(|group| group.members.load(Ordering::Relaxed) > 0);
        Some(state.groups.clone())
    }
}

/// Receiver of change notifications.
#[derive(Debug)]
pub struct Listener {
    change: Pin<Box<OwnedNotified>>,
    group: Arc<Group>,
}

impl Listener {
    /// Waits for the next change.
    pub async fn next(&mut self) {
        poll_fn(|cx| self.poll_change(cx)).await;
    }

    /// Returns `Ready` once after one or more changes.
    pub fn poll_change(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        ready!(self.change.as_mut().poll(cx));
        self.change.set(self.group.notify.clone().notified_owned());
        Poll::Ready(())
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.group.members.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Starts `count` listeners, each of which counts its first notification.
    fn listening(fan_out: &FanOut, tasks: &Tasks, count: usize) -> Arc<AtomicUsize> {
        let notified = Arc::<AtomicUsize>::default();
        for _ in 0..count {
            let (mut listener, notified) = (fan_out.listen(), notified.clone());
            tasks.spawn(TaskKind::Finish, "listener", async move {
                listener.next().await;
                notified.fetch_add(1, Ordering::Relaxed);
            });
        }
        notified
    }

    #[tokio::test]
    async fn every_listener_is_notified_of_a_change() {
        for count in [1, GROUP, GROUP + 1, 1_000] {
            let tasks = Tasks::new();
            let fan_out = FanOut::new(tasks.clone());
            let notified = listening(&fan_out, &tasks, count);
            fan_out.notify();
            tasks.shut_down().await;
            assert_eq!(notified.load(Ordering::Relaxed), count);
        }
    }

    #[tokio::test]
    async fn other_tasks_run_while_many_listeners_wake() {
        let tasks = Tasks::new();
        let fan_out = FanOut::new(tasks.clone());
        let notified = listening(&fan_out, &tasks, 1_000);
        tokio::task::yield_now().await;
        fan_out.notify();
        for _ in 0..2 {
            tokio::task::yield_now().await;
        }
        let notified_at_first_poll = notified.load(Ordering::Relaxed);
        assert!(
            notified_at_first_poll <= 2 * GROUP,
            "{notified_at_first_poll}"
        );
        tasks.shut_down().await;
        assert_eq!(notified.load(Ordering::Relaxed), 1_000);
    }

    #[tokio::test]
    async fn change_during_round_is_notified_in_next_round() {
        let tasks = Tasks::new();
        let fan_out = FanOut::new(tasks.clone());
        let mut first = fan_out.listen();
        let _others = listening(&fan_out, &tasks, 3 * GROUP);
        fan_out.notify();
        first.next().await;
        fan_out.notify();
        first.next().await;
        tasks.shut_down().await;
    }

    #[tokio::test]
    async fn slots_of_dropped_listeners_are_reused() {
        let fan_out = FanOut::new(Tasks::new());
        for _ in 0..100 {
            drop((0..GROUP).map(|_| fan_out.listen()).collect::<Vec<_>>());
        }
        assert_eq!(fan_out.0.state.lock().groups.len(), 1);
    }
}
