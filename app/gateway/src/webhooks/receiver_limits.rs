//! Limits per receiver, so that a slow or failing one does not delay the calls of others. Pure
//! except for the semaphores.

use std::collections::HashMap;
use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use tokio::sync::Semaphore;

/// Maximum number of concurrent calls to one host.
const MAX_CONCURRENT: usize = 4;
/// Maximum number of calls to one host that are in flight or wait for a permit.
const MAX_PENDING: usize = 16;
/// Maximum number of such calls to all hosts of one user.
const MAX_PENDING_PER_USER: usize = 32;
/// Delay of a call that was refused because of a limit.
const BUSY_RETRY_DELAY: TimeDelta = TimeDelta::seconds(2);
/// Number of consecutive failures after which a host is paused.
const FAILURE_THRESHOLD: u32 = 10;
/// Above this number of tracked hosts, those without calls and pause are evicted.
const MAX_TRACKED: usize = 4_096;
/// Duration of a pause.
const PAUSE: TimeDelta = TimeDelta::seconds(60);

/// Host and port, per user: failures of one user's calls do not affect other users.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Receiver {
    pub(super) user: Option<String>,
    pub(super) host: String,
}

/// Reason for a refused reservation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refusal {
    /// A limit is reached; retry at this time.
    Busy(DateTime<Utc>),
    /// The host failed repeatedly and is paused until this time.
    Paused(DateTime<Utc>),
}

/// State of each recently called host.
#[derive(Debug, Default)]
pub(super) struct ReceiverLimits {
    receivers: HashMap<Receiver, ReceiverState>,
    /// Number of pending calls of each user.
    pending: HashMap<Option<String>, usize>,
}

#[derive(Debug)]
struct ReceiverState {
    permits: Arc<Semaphore>,
    pending: usize,
    failures: u32,
    paused_until: Option<DateTime<Utc>>,
}

impl Default for ReceiverState {
    fn default() -> Self {
        Self {
            permits: Arc::new(Semaphore::new(MAX_CONCURRENT)),
            pending: 0,
            failures: 0,
            paused_until: None,
        }
    }
}

impl ReceiverLimits {
    /// Reserves a slot for a call to `receiver`, and returns the semaphore for its permit.
    pub(super) fn reserve(
        &mut self,
        receiver: &Receiver,
        now: DateTime<Utc>,
    ) -> Result<Arc<Semaphore>, Refusal> {
        if self.receivers.len() >= MAX_TRACKED {
            self.receivers.retain(|_, host| {
                host.pending > 0 || host.paused_until.is_some_and(|until| until > now)
            });
        }
        let host = self.receivers.entry(receiver.clone()).or_default();
        if let Some(until) = host.paused_until.filter(|until| *until > now) {
            return Err(Refusal::Paused(until));
        }
        // After its pause, a host is probed with a single call.
        if host.failures >= FAILURE_THRESHOLD && host.pending > 0 {
            return Err(Refusal::Paused(now + PAUSE));
        }
        let user_pending = self
            .pending
            .get(&receiver.user)
            .copied()
            .unwrap_or_default();
        if host.pending >= MAX_PENDING || user_pending >= MAX_PENDING_PER_USER {
            return Err(Refusal::Busy(now + BUSY_RETRY_DELAY));
        }
        host.pending += 1;
        self.pending.insert(receiver.user.clone(), user_pending + 1);
        Ok(host.permits.clone())
    }

    /// Releases the slot of a call. `works` is the result for the host, if known.
    pub(super) fn release(&mut self, receiver: &Receiver, works: Option<bool>, now: DateTime<Utc>) {
        match self.pending.get_mut(&receiver.user) {
            Some(pending) if *pending > 1 => *pending -= 1,
            _ => drop(self.pending.remove(&receiver.user)),
        }
        let Some(state) = self.receivers.get_mut(receiver) else {
            return;
        };
        state.pending = state.pending.saturating_sub(1);
        match works {
            Some(true) => (state.failures, state.paused_until) = (0, None),
            Some(false) => {
                state.failures = state.failures.saturating_add(1);
                if state.failures >= FAILURE_THRESHOLD {
                    state.paused_until = Some(now + PAUSE);
                }
            }
            None => {}
        }
        if state.pending == 0 && state.failures == 0 {
            self.receivers.remove(receiver);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(1_700_000_000 + seconds, 0).unwrap()
    }

    fn of(user: &str, host: &str) -> Receiver {
        Receiver {
            user: Some(user.to_owned()),
            host: host.to_owned(),
        }
    }

    #[test]
    fn pending_calls_are_limited_per_host() {
        let mut limits = ReceiverLimits::default();
        let (a, b) = (of("ann", "a"), of("ann", "b"));
        for _ in 0..MAX_PENDING {
            assert!(limits.reserve(&a, at(0)).is_ok());
        }
        assert_eq!(
            limits.reserve(&a, at(0)).map(drop),
            Err(Refusal::Busy(at(2)))
        );
        assert_eq!(
            limits
                .reserve(&b, at(0))
                .map(|permits| permits.available_permits()),
            Ok(MAX_CONCURRENT)
        );
        limits.release(&a, Some(true), at(0));
        assert!(limits.reserve(&a, at(0)).is_ok());
    }

    #[test]
    fn pending_calls_are_limited_per_user() {
        let mut limits = ReceiverLimits::default();
        for n in 0..MAX_PENDING_PER_USER {
            assert!(limits.reserve(&of("ann", &n.to_string()), at(0)).is_ok());
        }
        assert_eq!(
            limits.reserve(&of("ann", "one more"), at(0)).map(drop),
            Err(Refusal::Busy(at(2)))
        );
        assert!(limits.reserve(&of("bob", "0"), at(0)).is_ok());
        limits.release(&of("ann", "0"), Some(false), at(0));
        assert!(limits.reserve(&of("ann", "one more"), at(0)).is_ok());
    }

    #[test]
    fn failing_host_is_paused_and_then_probed_with_one_call() {
        let mut limits = ReceiverLimits::default();
        let a = of("ann", "a");
        for n in 0..10 {
            assert!(limits.reserve(&a, at(n)).is_ok(), "{n}");
            limits.release(&a, Some(false), at(n));
        }
        assert_eq!(
            limits.reserve(&a, at(10)).map(drop),
            Err(Refusal::Paused(at(69)))
        );
        assert!(limits.reserve(&of("bob", "a"), at(10)).is_ok());
        assert!(limits.reserve(&a, at(69)).is_ok());
        assert_eq!(
            limits.reserve(&a, at(69)).map(drop),
            Err(Refusal::Paused(at(129)))
        );
        limits.release(&a, Some(true), at(70));
        assert!((0..MAX_PENDING).all(|_| limits.reserve(&a, at(70)).is_ok()));
    }
}
