//! How much one receiver may take of the sender, so that a slow or broken one holds nobody else's calls. Pure but for its turns.

use std::collections::HashMap;
use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use tokio::sync::Semaphore;

/// Calls that one host gets at the same time.
const AT_ONCE: usize = 4;
/// Calls that one host may have under way or waiting for their turn.
const HELD: usize = 16;
/// Calls that all hosts of one user may have so.
const HELD_OF_USER: usize = 32;
/// When to come back with a call that found no place.
const COME_BACK: TimeDelta = TimeDelta::seconds(2);
/// Failures in a row after which a host is left alone.
const PATIENCE: u32 = 10;
/// Hosts that are remembered before those are forgotten that have no call and no rest.
const REMEMBERED: usize = 4_096;
/// How long it is left alone.
const REST: TimeDelta = TimeDelta::seconds(60);

/// A host and port as one user's calls name it: what they make of it is held against nobody else's.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Receiver {
    pub(super) user: Option<String>,
    pub(super) host: String,
}

/// Why a call has no place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoPlace {
    /// Others have them all; there may be one then.
    Busy(DateTime<Utc>),
    /// The host failed again and again, and is left alone until then.
    Rests(DateTime<Utc>),
}

/// What is known of each host that was called lately.
#[derive(Debug, Default)]
pub(super) struct Hosts {
    known: HashMap<Receiver, Host>,
    /// How many places each user has.
    held: HashMap<Option<String>, usize>,
}

#[derive(Debug)]
struct Host {
    turns: Arc<Semaphore>,
    held: usize,
    failures: u32,
    rests_until: Option<DateTime<Utc>>,
}

impl Default for Host {
    fn default() -> Self {
        Self {
            turns: Arc::new(Semaphore::new(AT_ONCE)),
            held: 0,
            failures: 0,
            rests_until: None,
        }
    }
}

impl Hosts {
    /// A place for one more call to `receiver`, with the turns it waits for.
    pub(super) fn admit(
        &mut self,
        receiver: &Receiver,
        now: DateTime<Utc>,
    ) -> Result<Arc<Semaphore>, NoPlace> {
        if self.known.len() >= REMEMBERED {
            self.known.retain(|_, host| {
                host.held > 0 || host.rests_until.is_some_and(|until| until > now)
            });
        }
        let host = self.known.entry(receiver.clone()).or_default();
        if let Some(until) = host.rests_until.filter(|until| *until > now) {
            return Err(NoPlace::Rests(until));
        }
        // After its rest a host shows with one call that it is back.
        if host.failures >= PATIENCE && host.held > 0 {
            return Err(NoPlace::Rests(now + REST));
        }
        let of_user = self.held.get(&receiver.user).copied().unwrap_or_default();
        if host.held >= HELD || of_user >= HELD_OF_USER {
            return Err(NoPlace::Busy(now + COME_BACK));
        }
        host.held += 1;
        self.held.insert(receiver.user.clone(), of_user + 1);
        Ok(host.turns.clone())
    }

    /// A call left its place: its host took calls or did not, or that is not known.
    pub(super) fn leave(&mut self, receiver: &Receiver, works: Option<bool>, now: DateTime<Utc>) {
        match self.held.get_mut(&receiver.user) {
            Some(held) if *held > 1 => *held -= 1,
            _ => drop(self.held.remove(&receiver.user)),
        }
        let Some(state) = self.known.get_mut(receiver) else {
            return;
        };
        state.held = state.held.saturating_sub(1);
        match works {
            Some(true) => (state.failures, state.rests_until) = (0, None),
            Some(false) => {
                state.failures = state.failures.saturating_add(1);
                if state.failures >= PATIENCE {
                    state.rests_until = Some(now + REST);
                }
            }
            None => {}
        }
        if state.held == 0 && state.failures == 0 {
            self.known.remove(receiver);
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
    fn a_host_has_so_many_places_and_others_have_theirs() {
        let mut hosts = Hosts::default();
        let (a, b) = (of("ann", "a"), of("ann", "b"));
        for _ in 0..HELD {
            assert!(hosts.admit(&a, at(0)).is_ok());
        }
        assert_eq!(hosts.admit(&a, at(0)).map(drop), Err(NoPlace::Busy(at(2))));
        assert_eq!(
            hosts
                .admit(&b, at(0))
                .map(|turns| turns.available_permits()),
            Ok(AT_ONCE)
        );
        hosts.leave(&a, Some(true), at(0));
        assert!(hosts.admit(&a, at(0)).is_ok());
    }

    #[test]
    fn one_users_many_hosts_leave_places_for_others() {
        let mut hosts = Hosts::default();
        for n in 0..HELD_OF_USER {
            assert!(hosts.admit(&of("ann", &n.to_string()), at(0)).is_ok());
        }
        assert_eq!(
            hosts.admit(&of("ann", "one more"), at(0)).map(drop),
            Err(NoPlace::Busy(at(2)))
        );
        assert!(hosts.admit(&of("bob", "0"), at(0)).is_ok());
        hosts.leave(&of("ann", "0"), Some(false), at(0));
        assert!(hosts.admit(&of("ann", "one more"), at(0)).is_ok());
    }

    #[test]
    fn who_fails_again_and_again_is_left_alone_and_then_tried_with_one_call() {
        let mut hosts = Hosts::default();
        let a = of("ann", "a");
        for n in 0..10 {
            assert!(hosts.admit(&a, at(n)).is_ok(), "{n}");
            hosts.leave(&a, Some(false), at(n));
        }
        assert_eq!(
            hosts.admit(&a, at(10)).map(drop),
            Err(NoPlace::Rests(at(69)))
        );
        assert!(hosts.admit(&of("bob", "a"), at(10)).is_ok());
        assert!(hosts.admit(&a, at(69)).is_ok());
        assert_eq!(
            hosts.admit(&a, at(69)).map(drop),
            Err(NoPlace::Rests(at(129)))
        );
        hosts.leave(&a, Some(true), at(70));
        assert!((0..HELD).all(|_| hosts.admit(&a, at(70)).is_ok()));
    }
}
