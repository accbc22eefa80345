//! Bytes of memory that the requests of all users share, of which each user can use a part.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use metrics::gauge;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Unit of a budget, in bytes.
const UNIT: usize = 1 << 10;
/// Number of known users from which users without reservations are forgotten.
const MAX_USERS: usize = 1_000;

/// Budget of one kind of memory.
///
/// Requests of one user wait for the part of their user first, and then, in the order of their
/// arrival, for the bytes of all. So at most one part of each user is ahead of a waiting request.
#[derive(Debug)]
pub(super) struct MemoryBudget {
    /// Gauge of the reserved bytes.
    gauge: &'static str,
    user_bytes: usize,
    total: Arc<Semaphore>,
    users: Mutex<HashMap<String, Weak<Semaphore>>>,
    /// Number of requests that wait for bytes that other users have reserved.
    waiting: AtomicUsize,
}

impl MemoryBudget {
    /// Creates a budget of `total` bytes, of which one user can use `user_bytes`.
    pub(super) fn new(gauge: &'static str, total: usize, user_bytes: usize) -> Self {
        Self {
            gauge,
            user_bytes,
            total: Arc::new(Semaphore::new(total / UNIT)),
            users: Mutex::default(),
            waiting: AtomicUsize::default(),
        }
    }

    /// Returns the part of a user.
    pub(super) fn share(&self, user: &str) -> Arc<Semaphore> {
        let mut users = self.users.lock();
        if let Some(share) = users.get(user).and_then(Weak::upgrade) {
            return share;
        }
        if users.len() >= MAX_USERS {
            users.retain(|_, share| share.strong_count() > 0);
        }
        let share = Arc::new(Semaphore::new(self.user_bytes / UNIT));
        users.insert(user.to_owned(), Arc::downgrade(&share));
        share
    }

    /// Reserves bytes of a user's part. More bytes than the part count as the whole part. Returns
    /// `None` if the budget is closed, which does not happen.
    pub(super) async fn reserve(&self, share: Arc<Semaphore>, bytes: u64) -> Option<Reservation> {
        let wanted = units(bytes.min(self.user_bytes as u64));
        let user = share.acquire_many_owned(wanted).await.ok()?;
        let waiting = Counted::one_of(&self.waiting);
        let total = self.total.clone().acquire_many_owned(wanted).await.ok()?;
        drop(waiting);
        Some(Reservation::new(self.gauge, total, user))
    }

    /// Reports whether a request waits for bytes that other users have reserved.
    pub(super) fn is_contended(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }
}

/// One of a number, until it is dropped.
struct Counted<'a>(&'a AtomicUsize);

impl<'a> Counted<'a> {
    fn one_of(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Part of a budget that one request uses, released on drop.
#[derive(Debug)]
pub(super) struct Reservation {
    gauge: &'static str,
    total: OwnedSemaphorePermit,
    /// Owns the user's part while a request uses it.
    user: OwnedSemaphorePermit,
}

impl Reservation {
    fn new(gauge: &'static str, total: OwnedSemaphorePermit, user: OwnedSemaphorePermit) -> Self {
        gauge!(gauge).increment(in_bytes(total.num_permits()));
        Self { gauge, total, user }
    }

    /// Releases what exceeds `bytes`.
    pub(super) fn shrink(&mut self, bytes: u64) {
        let unused = self
            .total
            .num_permits()
            .saturating_sub(units(bytes) as usize);
        let released = (self.total.split(unused), self.user.split(unused));
        gauge!(self.gauge).decrement(in_bytes(unused));
        drop(released);
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        gauge!(self.gauge).decrement(in_bytes(self.total.num_permits()));
    }
}

#[expect(clippy::cast_precision_loss, reason = "a gauge needs no exact value")]
fn in_bytes(permits: usize) -> f64 {
    (permits * UNIT) as f64
}

/// Returns the units of a number of bytes.
pub(super) fn units(bytes: u64) -> u32 {
    u32::try_from(bytes.div_ceil(UNIT as u64)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    const MIB: usize = 1 << 20;

    /// Reserves bytes if they are free.
    fn reserve(budget: &MemoryBudget, user: &str, bytes: usize) -> Option<Reservation> {
        let share = budget.share(user);
        budget.reserve(share, bytes as u64).now_or_never().flatten()
    }

    #[test]
    fn user_uses_its_part_and_all_use_the_total() {
        let budget = MemoryBudget::new("test_bytes", 2 * MIB, MIB);
        let first = reserve(&budget, "a", MIB).expect("free");
        assert!(reserve(&budget, "a", 1).is_none(), "the part is used");
        let _second = reserve(&budget, "b", 5 * MIB).expect("counted as the part");
        assert!(reserve(&budget, "c", 1).is_none(), "the total is used");
        drop(first);
        assert!(reserve(&budget, "c", 1).is_some());
    }

    #[test]
    fn shrunk_reservation_releases_its_rest() {
        let budget = MemoryBudget::new("test_bytes", MIB, MIB);
        let mut first = reserve(&budget, "a", MIB).expect("free");
        first.shrink(MIB as u64 / 4);
        first.shrink(MIB as u64);
        assert!(reserve(&budget, "b", MIB * 3 / 4 + 1).is_none());
        assert!(reserve(&budget, "b", MIB * 3 / 4).is_some());
    }

    #[test]
    fn waiting_for_other_users_is_contention() {
        let budget = MemoryBudget::new("test_bytes", 2 * MIB, MIB);
        let held = [
            reserve(&budget, "a", MIB).expect("free"),
            reserve(&budget, "b", MIB).expect("free"),
        ];
        {
            let mut own = Box::pin(budget.reserve(budget.share("a"), 1));
            assert!((&mut own).now_or_never().is_none());
            assert!(!budget.is_contended(), "the user waits for itself");
            let mut other = Box::pin(budget.reserve(budget.share("c"), 1));
            assert!((&mut other).now_or_never().is_none());
            assert!(budget.is_contended());
            drop(held);
            assert!((&mut other).now_or_never().is_some());
        }
        assert!(!budget.is_contended());
    }
}
