//! Bounded pool of hash computations.

use std::sync::Arc;
use std::time::Duration;

use deerflow_domain::accounts::PasswordHash;
use secrecy::{ExposeSecret, SecretString};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::Verification;

/// Maximum time to wait for a slot.
pub const SLOT_TIMEOUT: Duration = Duration::from_secs(2);
/// Slots per processor.
const SLOTS_PER_PROCESSOR: usize = 2;
/// Additional niceness of the threads: a tenth of the processor time of another busy thread.
#[cfg(target_os = "linux")]
const NICENESS: i32 = 10;
/// Niceness of the lowest priority.
#[cfg(target_os = "linux")]
const LOWEST: i32 = 19;

/// Error: no slot became free in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("too many sign-ins at the same time, try again in {} s", .retry_after.as_secs())]
pub struct Busy {
    /// Time after which to try again.
    pub retry_after: Duration,
}

impl Default for Busy {
    fn default() -> Self {
        Self {
            retry_after: SLOT_TIMEOUT,
        }
    }
}

/// Computes hashes on threads of low priority, a limited number at a time.
#[derive(Debug, Clone)]
pub struct PasswordPool {
    slots: Arc<Semaphore>,
}

impl Default for PasswordPool {
    /// Creates a pool with two slots per processor.
    fn default() -> Self {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        Self::with_slots(processors * SLOTS_PER_PROCESSOR)
    }
}

impl PasswordPool {
    /// Creates a pool with this number of slots.
    pub fn with_slots(slots: usize) -> Self {
        Self {
            slots: Arc::new(Semaphore::new(slots)),
        }
    }

    /// Computes the hash of a new password.
    pub async fn hash(&self, password: &SecretString) -> Result<PasswordHash, Busy> {
        let password = password.clone();
        let hash = self
            .run(move || super::hash(password.expose_secret()))
            .await?;
        hash.map(PasswordHash::new).ok_or_else(Busy::default)
    }

    /// Verifies a password. Without a hash, does the same work and does not match.
    pub async fn verify(
        &self,
        password: &SecretString,
        stored: Option<&PasswordHash>,
    ) -> Result<Verification, Busy> {
        let (password, stored) = (password.clone(), stored.cloned());
        let verify = move || {
            let stored = stored.as_ref().map(PasswordHash::expose);
            super::verify(password.expose_secret(), stored)
        };
        self.run(verify).await
    }

    /// Waits for a slot and computes. The computation holds its slot also if the caller is dropped.
    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Busy> {
        let slot = self.slot().await?;
        // A blocking task waits for the thread: Tokio does not advance a paused clock meanwhile.
        let computed = tokio::task::spawn_blocking(move || {
            let _slot = slot;
            with_low_priority(work)
        });
        let computed = computed.await.map_err(std::io::Error::from).flatten();
        computed.map_err(|error| {
            tracing::error!(%error, "a password hash was not computed");
            Busy::default()
        })
    }

    async fn slot(&self) -> Result<OwnedSemaphorePermit, Busy> {
        let slot = self.slots.clone().acquire_owned();
        match tokio::time::timeout(SLOT_TIMEOUT, slot).await {
            Ok(Ok(slot)) => Ok(slot),
            _ => Err(Busy::default()),
        }
    }
}

/// Computes on a thread of its own, because the priority of a shared one could not be restored.
fn with_low_priority<T: Send>(work: impl FnOnce() -> T + Send) -> std::io::Result<T> {
    let named = std::thread::Builder::new().name("password-hash".to_owned());
    std::thread::scope(|scope| {
        let thread = named.spawn_scoped(scope, || {
            yield_to_others();
            work()
        })?;
        let panicked = |_| std::io::Error::other("the computation panicked");
        thread.join().map_err(panicked)
    })
}

/// Lowers the priority of this thread, so that requests and streams get processor time first.
#[cfg(target_os = "linux")]
fn yield_to_others() {
    // On Linux the priority belongs to the thread.
    use rustix::process::{getpriority_process, setpriority_process};
    let lowered = getpriority_process(None)
        .and_then(|own| setpriority_process(None, (own + NICENESS).min(LOWEST)));
    if let Err(error) = lowered {
        tracing::debug!(%error, "the priority of a password hash was not lowered");
    }
}

/// Does nothing: other systems know priorities of processes only.
#[cfg(not(target_os = "linux"))]
fn yield_to_others() {}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn caller_without_slot_is_refused_after_2_seconds() {
        let pool = PasswordPool::with_slots(1);
        let slot = pool.slot().await.unwrap();
        let start = tokio::time::Instant::now();
        let refused = pool.verify(&"x".into(), None).await;
        assert_eq!(refused, Err(Busy::default()));
        assert_eq!(start.elapsed(), SLOT_TIMEOUT);
        drop(slot);
        assert!(pool.verify(&"x".into(), None).await.is_ok());
    }

    #[tokio::test]
    async fn hash_is_verified_by_pool() {
        let pool = PasswordPool::default();
        let password: SecretString = "correct horse".to_owned().into();
        let hash = pool.hash(&password).await.unwrap();
        assert!(pool.verify(&password, Some(&hash)).await.unwrap().matches);
        assert!(!pool.verify(&"x".into(), Some(&hash)).await.unwrap().matches);
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn computation_lowers_priority_of_its_thread_only() {
        let own = rustix::process::getpriority_process(None).unwrap();
        let niceness = PasswordPool::default()
            .run(|| rustix::process::getpriority_process(None).unwrap())
            .await;
        assert_eq!(niceness, Ok((own + NICENESS).min(LOWEST)));
        assert_eq!(rustix::process::getpriority_process(None).unwrap(), own);
    }

    #[tokio::test]
    async fn dropped_caller_does_not_free_slot_of_computation() {
        let pool = PasswordPool::with_slots(1);
        let (started, wait_started) = tokio::sync::oneshot::channel();
        let (finish, wait_finish) = std::sync::mpsc::channel::<()>();
        let work = pool.run(move || {
            let _ = started.send(());
            wait_finish.recv()
        });
        tokio::select! {
            _ = work => panic!("ended"),
            _ = wait_started => {}
        }
        assert_eq!(pool.slots.available_permits(), 0);
        finish.send(()).unwrap();
        assert!(pool.slot().await.is_ok());
    }
}
