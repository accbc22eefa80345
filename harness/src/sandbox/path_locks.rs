//! One writer at a time per file, with a fixed number of locks.

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher, Hash};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};

/// How long a writer waits for the others before it gives up.
const PATIENCE: Duration = Duration::from_secs(20);

const STRIPES: usize = 256;

/// Locks for any number of paths in constant space: paths share a lock by chance, which costs a short
/// wait and nothing else, because nobody holds two.
#[derive(Debug)]
pub struct PathLocks {
    stripes: Box<[Mutex<()>]>,
}

impl PathLocks {
    /// No lock is held.
    pub fn new() -> Self {
        Self {
            stripes: (0..STRIPES).map(|_| Mutex::new(())).collect(),
        }
    }

    /// Blocks until nobody else writes to what `key` names; nothing when that takes too long.
    pub fn lock(&self, key: &impl Hash) -> Option<MutexGuard<'_, ()>> {
        let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(key);
        let stripe = usize::try_from(hash % STRIPES as u64).unwrap_or_default();
        self.stripes.get(stripe)?.try_lock_for(PATIENCE)
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
    fn the_same_key_excludes_and_is_free_again_afterwards() {
        let locks = PathLocks::new();
        let held = locks.lock(&"a").expect("free");
        let taken = locks
            .stripes
            .iter()
            .filter(|stripe| stripe.is_locked())
            .count();
        assert_eq!(taken, 1);
        drop(held);
        assert!(locks.stripes.iter().all(|stripe| !stripe.is_locked()));
        assert!(locks.lock(&"a").is_some());
    }
}
