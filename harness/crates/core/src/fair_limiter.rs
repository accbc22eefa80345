//! Concurrency limit for long work: a bounded number of permits, at most one per user, so that one
//! user cannot use all of them.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Mutex as UserMutex, OwnedMutexGuard, OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// Fair concurrency limiter.
#[derive(Debug)]
pub struct FairLimiter {
    permits: Arc<Semaphore>,
    acquire_timeout: Duration,
    users: Mutex<HashMap<String, Weak<UserMutex<()>>>>,
}

/// Permit of one user, released on drop.
#[derive(Debug)]
pub struct Permit {
    _user: OwnedMutexGuard<()>,
    _shared: OwnedSemaphorePermit,
}

impl FairLimiter {
    /// Creates a limiter with `max_concurrent` permits; `acquire` waits for at most
    /// `acquire_timeout`.
    pub fn new(max_concurrent: usize, acquire_timeout: Duration) -> Self {
        Self {
            permits: Arc::new(Semaphore::new(max_concurrent)),
            acquire_timeout,
            users: Mutex::default(),
        }
    }

    /// Acquires a permit for the user; `None` after the timeout.
    pub async fn acquire(&self, user: &str) -> Option<Permit> {
        let user_lock = self.user_lock(user);
        let both = async {
            Some(Permit {
                _user: user_lock.lock_owned().await,
                _shared: self.permits.clone().acquire_owned().await.ok()?,
            })
        };
        timeout(self.acquire_timeout, both).await.ok().flatten()
    }

    fn user_lock(&self, user: &str) -> Arc<UserMutex<()>> {
        let mut users = self.users.lock();
        users.retain(|_, user_lock| user_lock.strong_count() > 0);
        users.get(user).and_then(Weak::upgrade).unwrap_or_else(|| {
            let user_lock = Arc::<UserMutex<()>>::default();
            users.insert(user.to_owned(), Arc::downgrade(&user_lock));
            user_lock
        })
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn each_user_holds_at_most_one_permit() {
        let limiter = FairLimiter::new(2, Duration::from_secs(1));
        let acquire = |user: &'static str| limiter.acquire(user);
        let ann = acquire("ann").await.unwrap();
        assert!(acquire("ann").await.is_none(), "ann holds a permit");
        let bob = acquire("bob").await.unwrap();
        let mut cleo = Box::pin(acquire("cleo"));
        assert!(
            cleo.as_mut().now_or_never().is_none(),
            "both permits are in use"
        );
        drop(ann);
        let cleo = cleo.await.unwrap();
        drop((bob, cleo));
        assert!(acquire("ann").await.is_some());
        assert_eq!(
            limiter.users.lock().len(),
            1,
            "entries of users without a permit are removed by the next call"
        );
    }
}
