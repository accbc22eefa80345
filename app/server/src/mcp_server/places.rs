//! How many calls are worked on at once.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The most calls at once. A model that asks for more waits for an answer first.
pub(super) const MOST_CALLS: u32 = 16;

/// Places for calls. Clones share them.
#[derive(Debug, Clone)]
pub(super) struct Places(Arc<Semaphore>);

/// A place, free again when it is dropped.
pub(super) type Place = OwnedSemaphorePermit;

impl Places {
    /// All of them, free.
    pub(super) fn new() -> Self {
        Self(Arc::new(Semaphore::new(MOST_CALLS as usize)))
    }

    /// One, if there is one.
    pub(super) fn take(&self) -> Option<Place> {
        self.0.clone().try_acquire_owned().ok()
    }

    /// Waits until no call is worked on any more.
    pub(super) async fn all_free(&self) {
        _ = self.0.acquire_many(MOST_CALLS).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn there_is_an_end_to_places_and_to_waiting_for_them() {
        let places = Places::new();
        let taken: Vec<Place> = std::iter::from_fn(|| places.take()).collect();
        assert_eq!(taken.len(), MOST_CALLS as usize);
        let mut waiting = Box::pin(places.all_free());
        assert!(futures_util::poll!(&mut waiting).is_pending());
        drop(taken);
        waiting.await;
    }
}
