//! Permits that waiting users receive in turns, so that a user with many requests does not delay the
//! others.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::permit_waits::PermitWait;

/// Limited number of permits for one kind of work.
///
/// A released permit goes to the waiting users in turns, and to the requests of one user in their
/// order. A user may hold all permits while no other waits, unless the number per user is limited.
#[derive(Debug)]
pub struct FairPermits {
    /// Kind of work, such as `model_calls`, for metrics and for runs that wait.
    work: &'static str,
    queue: Arc<Mutex<Queue>>,
}

/// One permit, released on drop.
#[derive(Debug)]
pub struct FairPermit {
    user: String,
    /// `None` once the permit has been passed on.
    queue: Option<Arc<Mutex<Queue>>>,
}

/// Free permits, and the requests that wait for one. No request that could receive a permit waits
/// while one is free.
#[derive(Debug)]
struct Queue {
    free: usize,
    max_per_user: usize,
    /// Number of permits of each user who holds some.
    held: HashMap<String, usize>,
    /// Waiting users, the next one first.
    turns: VecDeque<String>,
    waiting: HashMap<String, VecDeque<oneshot::Sender<FairPermit>>>,
}

impl FairPermits {
    /// Creates `count` permits for this kind of work.
    pub fn new(work: &'static str, count: usize) -> Self {
        Self::limited_per_user(work, count, count)
    }

    /// Creates `count` permits, of which each user holds at most `max_per_user`: for work of long
    /// duration, which would otherwise delay the others until it ends.
    pub fn limited_per_user(work: &'static str, count: usize, max_per_user: usize) -> Self {
        Self {
            work,
            queue: Arc::new(Mutex::new(Queue {
                free: count,
                max_per_user,
                held: HashMap::new(),
                turns: VecDeque::new(),
                waiting: HashMap::new(),
            })),
        }
    }

    /// Reports whether no permit is free.
    pub fn is_exhausted(&self) -> bool {
        self.queue.lock().free == 0
    }

    /// Waits for a permit for `user`. Dropping the future withdraws the request.
    pub async fn acquire(&self, user: &str) -> FairPermit {
        let granted = {
            let mut queue = self.queue.lock();
            if queue.free > 0 && queue.may_hold_more(user) {
                queue.take(user);
                return FairPermit::of(&self.queue, user);
            }
            queue.wait(user)
        };
        let _waiting = PermitWait::begin(self.work);
        match granted.await {
            Ok(permit) => permit,
            // A sender is dropped only with the queue, which `self` owns.
            Err(_) => std::future::pending().await,
        }
    }

    /// Waits for a permit for `user`, at most for `timeout`.
    pub async fn acquire_within(&self, user: &str, timeout: Duration) -> Option<FairPermit> {
        tokio::time::timeout(timeout, self.acquire(user)).await.ok()
    }
}

impl FairPermit {
    fn of(queue: &Arc<Mutex<Queue>>, user: &str) -> Self {
        let queue = Some(queue.clone());
        let user = user.to_owned();
        Self { user, queue }
    }
}

impl Drop for FairPermit {
    fn drop(&mut self) {
        let Some(queue) = self.queue.take() else {
            return;
        };
        queue.lock().release(&self.user);
        loop {
            let Some((user, waiting)) = queue.lock().next() else {
                return;
            };
            let Err(mut unused) = waiting.send(Self::of(&queue, &user)) else {
                return;
            };
            // The request was withdrawn; the next one receives the permit.
            unused.queue = None;
            queue.lock().release(&user);
        }
    }
}

impl Queue {
    fn may_hold_more(&self, user: &str) -> bool {
        self.held.get(user).copied().unwrap_or_default() < self.max_per_user
    }

    fn take(&mut self, user: &str) {
        self.free -= 1;
        *self.held.entry(user.to_owned()).or_default() += 1;
    }

    fn release(&mut self, user: &str) {
        self.free += 1;
        if let Some(held) = self.held.get_mut(user) {
            *held -= 1;
            if *held == 0 {
                self.held.remove(user);
            }
        }
    }

    /// Adds a request of `user`.
    fn wait(&mut self, user: &str) -> oneshot::Receiver<FairPermit> {
        let (sender, receiver) = oneshot::channel();
        let requests = self.waiting.entry(user.to_owned()).or_default();
        if requests.is_empty() {
            self.turns.push_back(user.to_owned());
        }
        // Otherwise withdrawn requests would remain until their turn.
        requests.retain(|request| !request.is_closed());
        requests.push_back(sender);
        receiver
    }

    /// Takes a permit for the request whose turn it is, and returns the request with its user.
    fn next(&mut self) -> Option<(String, oneshot::Sender<FairPermit>)> {
        if self.free == 0 {
            return None;
        }
        let may_hold_more = |user: &String| self.may_hold_more(user);
        let turn = self.turns.iter().position(may_hold_more)?;
        let user = self.turns.remove(turn)?;
        let requests = self.waiting.get_mut(&user)?;
        let request = requests.pop_front()?;
        if requests.is_empty() {
            self.waiting.remove(&user);
        } else {
            self.turns.push_back(user.clone());
        }
        self.take(&user);
        Some((user, request))
    }
}

#[cfg(test)]
#[path = "fair_permits_tests.rs"]
mod tests;
