//! How much one receiver may take of the sender, so that a slow or broken one holds nobody else's calls. Pure but for its turns.

use std::collections::HashMap;
use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use tokio::sync::Semaphore;

/// Calls that one host gets at the same time.
const AT_ONCE: usize = 4;
/// Calls that one host may have under way or waiting for their turn.
const HELD: usize = 16;
/// When to come back with a call that found no place.
const COME_BACK: TimeDelta = TimeDelta::seconds(2);
/// Failures in a row after which a host is left alone.
const PATIENCE: u32 = 10;
/// Hosts that are remembered before those are forgotten that have no call and no rest.
const REMEMBERED: usize = 4_096;
/// How long it is left alone.
const REST: TimeDelta = TimeDelta::seconds(60);

/// What is known of each host that was called lately.
#[derive(Debug, Default)]
pub(super) struct Hosts(HashMap<String, Host>);

#[derive(Debug)]
struct Host {
    turns: Arc<Semaphore>,
    held: usize,
    failures: u32,
    rests_until: Option<DateTime<Utc>>,
}

impl Default for Host {
    fn default() -> Self {
        Self { turns: Arc::new(Semaphore::new(AT_ONCE)), held: 0, failures: 0, rests_until: None }
    }
}

impl Hosts {
    /// A place for one more call to `host`, with the turns it waits for; else when to come back.
    pub(super) fn admit(&mut self, host: &str, now: DateTime<Utc>) -> Result<Arc<Semaphore>, DateTime<Utc>> {
        if self.0.len() >= REMEMBERED {
            self.0.retain(|_, host| host.held > 0 || host.rests_until.is_some_and(|until| until > now));
        }
        let host = self.0.entry(host.to_owned()).or_default();
        if let Some(until) = host.rests_until.filter(|until| *until > now) {
            return Err(until);
        }
        // After its rest a host shows with one call that it is back.
        let places = if host.failures >= PATIENCE { 1 } else { HELD };
        if host.held >= places {
            return Err(now + COME_BACK);
        }
        host.held += 1;
        Ok(host.turns.clone())
    }

    /// A call left its place: it was taken or not, or never made.
    pub(super) fn leave(&mut self, host: &str, taken: Option<bool>, now: DateTime<Utc>) {
        let Some(state) = self.0.get_mut(host) else { return };
        state.held = state.held.saturating_sub(1);
        match taken {
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
            self.0.remove(host);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(1_700_000_000 + seconds, 0).unwrap()
    }

    #[test]
    fn a_host_has_so_many_places_and_others_have_theirs() {
        let mut hosts = Hosts::default();
        for _ in 0..HELD {
            assert!(hosts.admit("a", at(0)).is_ok());
        }
        assert_eq!(hosts.admit("a", at(0)).map(drop), Err(at(2)));
        assert_eq!(hosts.admit("b", at(0)).map(|turns| turns.available_permits()), Ok(AT_ONCE));
        hosts.leave("a", Some(true), at(0));
        assert!(hosts.admit("a", at(0)).is_ok());
    }

    #[test]
    fn who_fails_again_and_again_is_left_alone_and_then_tried_with_one_call() {
        let mut hosts = Hosts::default();
        for n in 0..10 {
            assert!(hosts.admit("a", at(n)).is_ok(), "{n}");
            hosts.leave("a", Some(false), at(n));
        }
        assert_eq!(hosts.admit("a", at(10)).map(drop), Err(at(69)));
        assert!(hosts.admit("a", at(69)).is_ok());
        assert_eq!(hosts.admit("a", at(69)).map(drop), Err(at(71)));
        hosts.leave("a", Some(true), at(70));
        assert!((0..HELD).all(|_| hosts.admit("a", at(70)).is_ok()));
    }
}
