//! Permits that waiting users receive in turns, so that a user with many requests does not delay the
//! others.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;

/// Limited number of permits.
///
/// A released permit goes to the waiting users in turns, and to the requests of one user in their
/// order. A user may hold all permits while no other waits.
#[derive(Debug)]
pub struct FairPermits {
    queue: Arc<Mutex<Queue>>,
}

/// One permit, released on drop.
#[derive(Debug)]
pub struct FairPermit {
    /// `None` once the permit has been passed on.
    queue: Option<Arc<Mutex<Queue>>>,
}

/// Free permits, or the requests that wait for one: there are never both.
#[derive(Debug)]
struct Queue {
    free: usize,
    /// Waiting users, the next one first.
    turns: VecDeque<String>,
    waiting: HashMap<String, VecDeque<oneshot::Sender<FairPermit>>>,
}

impl FairPermits {
    /// Creates `count` permits.
    pub fn new(count: usize) -> Self {
        Self {
            queue: Arc::new(Mutex::new(Queue {
                free: count,
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
            if queue.free > 0 {
                queue.free -= 1;
                return FairPermit::of(&self.queue);
            }
            queue.wait(user)
        };
        match granted.await {
            Ok(permit) => permit,
            // A sender is dropped only with the queue, which `self` owns.
            Err(_) => std::future::pending().await,
        }
    }
}

impl FairPermit {
    fn of(queue: &Arc<Mutex<Queue>>) -> Self {
        let queue = Some(queue.clone());
        Self { queue }
    }
}

impl Drop for FairPermit {
    fn drop(&mut self) {
        let Some(queue) = self.queue.take() else {
            return;
        };
        loop {
            let Some(waiting) = queue.lock().next() else {
                return;
            };
            match waiting.send(Self::of(&queue)) {
                Ok(()) => return,
                // The request was withdrawn; the next one receives the permit.
                Err(mut unused) => unused.queue = None,
            }
        }
    }
}

impl Queue {
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

    /// Returns the request whose turn it is. Without one, the permit becomes free.
    fn next(&mut self) -> Option<oneshot::Sender<FairPermit>> {
        let Some(user) = self.turns.pop_front() else {
            self.free += 1;
            return None;
        };
        let requests = self.waiting.get_mut(&user)?;
        let request = requests.pop_front();
        if requests.is_empty() {
            self.waiting.remove(&user);
        } else {
            self.turns.push_back(user);
        }
        request
    }
}

#[cfg(test)]
#[path = "fair_permits_tests.rs"]
mod tests;
