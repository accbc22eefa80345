//! Permits that waiting users receive in turns by weighted round robin, so that a user with many
//! requests does not delay the others.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::permit_waits::PermitWait;
use crate::turn_weights::TurnWeights;

/// Limited number of permits for one kind of work.
///
/// A released permit goes to the waiting users in turns, and to the requests of one user in their
/// order. A round gives each waiting user as many permits as its [weight](TurnWeights), so that a
/// user waits at most until every other has received its weight. A user may hold all permits while
/// no other waits, unless the number per user is limited.
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
    weights: Arc<TurnWeights>,
    /// Number of permits of each user who holds some.
    held: HashMap<String, usize>,
    /// Waiting users in order, the next one first. A user whose turn came while it held as many
    /// permits as it may is taken out until it releases one.
    turns: VecDeque<String>,
    waiting: HashMap<String, Waiting>,
}

/// Requests of one user that wait.
#[derive(Debug, Default)]
struct Waiting {
    requests: VecDeque<oneshot::Sender<FairPermit>>,
    /// Number of permits that the user may still receive in its current round.
    credit: u32,
    /// `true` if the user is among the turns.
    has_turn: bool,
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
                weights: TurnWeights::of_process(),
                held: HashMap::new(),
                turns: VecDeque::new(),
                waiting: HashMap::new(),
            })),
        }
    }

    /// Uses these weights in place of those of the process.
    #[must_use]
    pub fn with_weights(self, weights: Arc<TurnWeights>) -> Self {
        self.queue.lock().weights = weights;
        self
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
        // One lock for both: a request that comes in between would receive the permit before those
        // that wait.
        let mut next = queue.lock().release_and_next(&self.user);
        while let Some((user, waiting)) = next {
            let Err(mut unused) = waiting.send(Self::of(&queue, &user)) else {
                return;
            };
            // The request was withdrawn; the next one receives the permit.
            unused.queue = None;
            next = queue.lock().undo_and_next(&user);
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
        let waiting = match self.waiting.get_mut(user) {
            Some(waiting) => waiting,
            None => {
                self.turns.push_back(user.to_owned());
                let waiting = self.waiting.entry(user.to_owned()).or_default();
                waiting.has_turn = true;
                waiting
            }
        };
        // Otherwise withdrawn requests would remain until their turn.
        waiting.requests.retain(|request| !request.is_closed());
        waiting.requests.push_back(sender);
        receiver
    }

    fn release_and_next(&mut self, user: &str) -> Option<(String, oneshot::Sender<FairPermit>)> {
        self.release(user);
        if let Some(waiting) = self.waiting.get_mut(user).filter(|user| !user.has_turn) {
            waiting.has_turn = true;
            self.turns.push_front(user.to_owned());
        }
        self.next()
    }

    /// Takes back the permit of a withdrawn request, so that the request counts as no turn.
    fn undo_and_next(&mut self, user: &str) -> Option<(String, oneshot::Sender<FairPermit>)> {
        self.release(user);
        if let Some(waiting) = self.waiting.get_mut(user) {
            waiting.credit = waiting.credit.saturating_add(1);
            waiting.has_turn = true;
            let turn = self.turns.iter().rposition(|next| next == user);
            let own = turn.and_then(|turn| self.turns.remove(turn));
            self.turns
                .push_front(own.unwrap_or_else(|| user.to_owned()));
        }
        self.next()
    }

    /// Takes a permit for the request whose turn it is, and returns the request with its user.
    ///
    /// Each step of the loop but the last removes a user from the turns or a withdrawn request,
    /// which was added once: the cost of a release does not depend on the number of users.
    fn next(&mut self) -> Option<(String, oneshot::Sender<FairPermit>)> {
        while self.free > 0 {
            let user = self.turns.pop_front()?;
            let may_hold_more = self.may_hold_more(&user);
            let Some(waiting) = self.waiting.get_mut(&user) else {
                continue;
            };
            if !may_hold_more {
                waiting.has_turn = false;
                continue;
            }
            let Some(request) = waiting.pop_open() else {
                self.waiting.remove(&user);
                continue;
            };
            if waiting.credit == 0 {
                waiting.credit = self.weights.of(&user).get();
            }
            waiting.credit -= 1;
            if waiting.requests.is_empty() {
                self.waiting.remove(&user);
            } else if waiting.credit > 0 {
                self.turns.push_front(user.clone());
            } else {
                self.turns.push_back(user.clone());
            }
            self.take(&user);
            return Some((user, request));
        }
        None
    }
}

impl Waiting {
    /// Removes the first request that was not withdrawn, and the withdrawn ones before it.
    fn pop_open(&mut self) -> Option<oneshot::Sender<FairPermit>> {
        loop {
            let request = self.requests.pop_front()?;
            if !request.is_closed() {
                return Some(request);
            }
        }
    }
}

#[cfg(test)]
#[path = "fair_permits_tests.rs"]
mod tests;
#[cfg(test)]
#[path = "fair_permits_weights_tests.rs"]
mod weights_tests;
