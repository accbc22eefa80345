//! Write locks per file, with a fixed number of mutexes.

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher, Hash};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};

/// Timeout for acquiring a lock.
const LOCK_TIMEOUT: Duration = Duration::from_secs(20);

const STRIPES: usize = 256;

/// Locks for any number of paths in constant space. Paths may share a mutex by hash collision; this
/// only costs a short wait, because no caller holds two locks.
#[derive(Debug)]
pub struct PathLocks {
    stripes: Box<[Mutex<()>]>,
}

impl PathLocks {
    /// Creates the locks, all free.
    pub fn new() -> Self {
        Self {
            stripes: (0..STRIPES).map(|_| Mutex::new(())).collect(),
        }
    }

    /// Acquires the lock of `key`; blocks while it is held. Returns `None` on timeout.
    pub fn lock(&self, key: &impl Hash) -> Option<MutexGuard<'_, ()>> {
        let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(key);
        let stripe = usize::try_from(hash % STRIPES as u64).unwrap_or_default();
        self.stripes.get(stripe)?.try_lock_for(LOCK_TIMEOUT)
    }
}

impl Default for PathLocks {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lock_excludes_same_key_until_dropped() {
        let locks = PathLocks::new();
        let guard = locks.lock(&"a").expect("free");
        let locked = locks
            .stripes
            .iter()
            .filter(|stripe| stripe.is_locked())
            .count();
        assert_eq!(locked, 1);
        drop(guard);
        assert!(locks.stripes.iter().all(|stripe| !stripe.is_locked()));
        assert!(locks.lock(&"a").is_some());
    }
}
