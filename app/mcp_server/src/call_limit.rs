//! Limit of concurrent tool calls.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Maximum number of concurrent calls; further calls are rejected.
pub(crate) const MAX_CALLS: u32 = 16;

/// Issues permits for calls. Clones share the limit.
#[derive(Debug, Clone)]
pub(crate) struct CallLimiter(Arc<Semaphore>);

/// Permit of one call, released on drop.
pub(crate) type CallPermit = OwnedSemaphorePermit;

impl CallLimiter {
    /// Creates a limiter with all permits available.
    pub(crate) fn new() -> Self {
        Self(Arc::new(Semaphore::new(MAX_CALLS as usize)))
    }

    /// Returns a permit if one is available.
    pub(crate) fn try_acquire(&self) -> Option<CallPermit> {
        self.0.clone().try_acquire_owned().ok()
    }

    /// Waits until all permits are released.
    pub(crate) async fn wait_until_idle(&self) {
        _ = self.0.acquire_many(MAX_CALLS).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn permits_are_limited_and_idle_wait_ends() {
        let limiter = CallLimiter::new();
        let taken: Vec<CallPermit> = std::iter::from_fn(|| limiter.try_acquire()).collect();
        assert_eq!(taken.len(), MAX_CALLS as usize);
        let mut waiting = Box::pin(limiter.wait_until_idle());
        assert!(futures_util::poll!(&mut waiting).is_pending());
        drop(taken);
        waiting.await;
    }
}
