//! Turns at work that takes long: a few at once and one of each user, so that nobody's many keep the others waiting.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Mutex as Own, OwnedMutexGuard, OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// Who is at work, and who waits.
#[derive(Debug)]
pub(crate) struct Turns {
    places: Arc<Semaphore>,
    patience: Duration,
    users: Mutex<HashMap<String, Weak<Own<()>>>>,
}

/// Somebody's turn, until it is dropped.
#[derive(Debug)]
pub(crate) struct Turn {
    _own: OwnedMutexGuard<()>,
    _place: OwnedSemaphorePermit,
}

impl Turns {
    /// Turns for so many users at once; nobody waits longer than `patience`.
    pub(crate) fn new(at_once: usize, patience: Duration) -> Self {
        Self {
            places: Arc::new(Semaphore::new(at_once)),
            patience,
            users: Mutex::default(),
        }
    }

    /// The user's next turn, unless it takes too long to come.
    pub(crate) async fn next(&self, user: &str) -> Option<Turn> {
        let own = self.own(user);
        let both = async {
            Some(Turn {
                _own: own.lock_owned().await,
                _place: self.places.clone().acquire_owned().await.ok()?,
            })
        };
        timeout(self.patience, both).await.ok().flatten()
    }

    fn own(&self, user: &str) -> Arc<Own<()>> {
        let mut users = self.users.lock();
        users.retain(|_, own| own.strong_count() > 0);
        users.get(user).and_then(Weak::upgrade).unwrap_or_else(|| {
            let own = Arc::<Own<()>>::default();
            users.insert(user.to_owned(), Arc::downgrade(&own));
            own
        })
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_few_users_have_one_turn_each() {
        let turns = Turns::new(2, Duration::from_secs(1));
        let next = |user: &'static str| turns.next(user);
        let ann = next("ann").await.unwrap();
        assert!(next("ann").await.is_none(), "she has one");
        let bob = next("bob").await.unwrap();
        let mut cleo = Box::pin(next("cleo"));
        assert!(cleo.as_mut().now_or_never().is_none(), "two are at work");
        drop(ann);
        let cleo = cleo.await.unwrap();
        drop((bob, cleo));
        assert!(next("ann").await.is_some());
        assert_eq!(
            turns.users.lock().len(),
            1,
            "those who are done are forgotten when the next comes"
        );
    }
}
