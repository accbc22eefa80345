//! Wakes all who follow a stream: at once where they are few, in groups where they are many.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::sync::futures::OwnedNotified;

use crate::runtime::tasks::{TaskKind, Tasks};

/// So many are woken before others get their turn: what the first of them do takes some hundred microseconds.
const GROUP: usize = 32;

/// Tells the viewers of one stream that it changed.
///
/// Waking thousands in one go would fill the queues of the process with them, and the run that they watch would wait behind them
/// all for its own next step. So each group follows when the one before has had its turn; changes that come meanwhile are told
/// with the next round, so that a viewer who is late gets them together.
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
    /// Somebody goes from group to group.
    going: bool,
    /// There was a change since the last round began.
    changed: bool,
}

#[derive(Debug, Default)]
struct Group {
    bell: Arc<Notify>,
    members: AtomicUsize,
}

impl FanOut {
    /// Nobody listens yet. Rounds through many groups are among `tasks`.
    pub fn new(tasks: Tasks) -> Self {
        Self(Arc::new(Inner {
            tasks,
            state: Mutex::default(),
        }))
    }

    /// Hears of every change after this call.
    pub fn listen(&self) -> Listener {
        let mut state = self.0.state.lock();
        let with_room = state
            .groups
            .iter()
            .find(|group| group.members.load(Ordering::Relaxed) < GROUP)
            .cloned();
        let group = with_room.unwrap_or_else(|| {
            let group = Arc::<Group>::default();
            state.groups.push(group.clone());
            group
        });
        // Members come under the lock only, so a group is never overfilled.
        group.members.fetch_add(1, Ordering::Relaxed);
        Listener {
            change: Box::pin(group.bell.clone().notified_owned()),
            group,
        }
    }

    /// There was a change. No lock that a listener takes is to be held.
    pub fn tell(&self) {
        let mut state = self.0.state.lock();
        match &*state.groups {
            [] => {}
            [only] => {
                let bell = only.bell.clone();
                drop(state);
                bell.notify_waiters();
            }
            _ => {
                state.changed = true;
                if !std::mem::replace(&mut state.going, true) {
                    drop(state);
                    self.0
                        .tasks
                        .spawn(TaskKind::Finish, "fan-out", self.clone().go_round());
                }
            }
        }
    }

    async fn go_round(self) {
        while let Some(groups) = self.next_round() {
            for group in groups {
                group.bell.notify_waiters();
                tokio::task::yield_now().await;
            }
        }
    }

    /// Whom to tell; nobody when all know.
    fn next_round(&self) -> Option<Vec<Arc<Group>>> {
        let mut state = self.0.state.lock();
        state.going = std::mem::take(&mut state.changed);
        if !state.going {
            return None;
        }
        // A group that all have left is filled again, unless there are many of them.
        state
            .groups
            .retain(|group| group.members.load(Ordering::Relaxed) > 0);
        Some(state.groups.clone())
    }
}

/// One who is told of changes.
#[derive(Debug)]
pub struct Listener {
    change: Pin<Box<OwnedNotified>>,
    group: Arc<Group>,
}

impl Listener {
    /// Waits for the next change that was not heard of.
    pub async fn next(&mut self) {
        poll_fn(|cx| self.poll_change(cx)).await;
    }

    /// Ready once after one or more changes.
    pub fn poll_change(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        ready!(self.change.as_mut().poll(cx));
        self.change.set(self.group.bell.clone().notified_owned());
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

    /// So many listeners, each of which counts the first change that it hears of.
    fn listening(fan_out: &FanOut, tasks: &Tasks, count: usize) -> Arc<AtomicUsize> {
        let heard = Arc::<AtomicUsize>::default();
        for _ in 0..count {
            let (mut listener, heard) = (fan_out.listen(), heard.clone());
            tasks.spawn(TaskKind::Finish, "listener", async move {
                listener.next().await;
                heard.fetch_add(1, Ordering::Relaxed);
            });
        }
        heard
    }

    #[tokio::test]
    async fn everybody_hears_of_a_change() {
        for count in [1, GROUP, GROUP + 1, 1_000] {
            let tasks = Tasks::new();
            let fan_out = FanOut::new(tasks.clone());
            let heard = listening(&fan_out, &tasks, count);
            fan_out.tell();
            tasks.shut_down().await;
            assert_eq!(heard.load(Ordering::Relaxed), count);
        }
    }

    #[tokio::test]
    async fn others_get_their_turn_while_many_are_woken() {
        let tasks = Tasks::new();
        let fan_out = FanOut::new(tasks.clone());
        let heard = listening(&fan_out, &tasks, 1_000);
        tokio::task::yield_now().await;
        fan_out.tell();
        for _ in 0..2 {
            tokio::task::yield_now().await;
        }
        let when_it_is_my_turn = heard.load(Ordering::Relaxed);
        assert!(when_it_is_my_turn <= 2 * GROUP, "{when_it_is_my_turn}");
        tasks.shut_down().await;
        assert_eq!(heard.load(Ordering::Relaxed), 1_000);
    }

    #[tokio::test]
    async fn a_change_during_a_round_is_told_in_another() {
        let tasks = Tasks::new();
        let fan_out = FanOut::new(tasks.clone());
        let mut first = fan_out.listen();
        let _others = listening(&fan_out, &tasks, 3 * GROUP);
        fan_out.tell();
        first.next().await;
        fan_out.tell();
        first.next().await;
        tasks.shut_down().await;
    }

    #[tokio::test]
    async fn places_of_those_who_left_are_taken_again() {
        let fan_out = FanOut::new(Tasks::new());
        for _ in 0..100 {
            drop((0..GROUP).map(|_| fan_out.listen()).collect::<Vec<_>>());
        }
        assert_eq!(fan_out.0.state.lock().groups.len(), 1);
    }
}
