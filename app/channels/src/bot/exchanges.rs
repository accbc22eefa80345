//! Limit of exchanges per conversation, against bots that answer each other.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

const MINUTE: Duration = Duration::from_secs(60);
/// Number of conversations beyond which inactive ones are forgotten.
const MAX_CONVERSATIONS: usize = 1_024;

/// Decision about an exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exchange {
    /// It is within the limit.
    Permitted,
    /// It exceeds the limit; the person is informed.
    Refused,
    /// It exceeds the limit; the person was informed within the last minute.
    Silent,
}

#[derive(Debug, Default)]
struct Recent {
    exchanges: VecDeque<Instant>,
    informed: Option<Instant>,
}

impl Recent {
    fn may_inform(&mut self, now: Instant) -> bool {
        let may = self.informed.is_none_or(|at| now - at >= MINUTE);
        if may {
            self.informed = Some(now);
        }
        may
    }
}

/// Recent exchanges by conversation.
#[derive(Debug)]
pub(crate) struct Exchanges {
    per_minute: usize,
    recent: Mutex<HashMap<String, Recent>>,
}

impl Exchanges {
    /// Creates a limit; 0 means none.
    pub(crate) fn new(per_minute: usize) -> Self {
        Self {
            per_minute,
            recent: Mutex::default(),
        }
    }

    /// Counts an exchange and decides about it.
    pub(crate) fn begin(&self, conversation: &str, now: Instant) -> Exchange {
        if self.per_minute == 0 {
            return Exchange::Permitted;
        }
        self.with(conversation, now, |recent| {
            if recent.exchanges.len() < self.per_minute {
                recent.exchanges.push_back(now);
                Exchange::Permitted
            } else if recent.may_inform(now) {
                Exchange::Refused
            } else {
                Exchange::Silent
            }
        })
    }

    /// Reports whether a conversation may be informed about refused messages now, which it may once
    /// a minute.
    pub(crate) fn may_inform(&self, conversation: &str, now: Instant) -> bool {
        self.with(conversation, now, |recent| recent.may_inform(now))
    }

    fn with<T>(&self, conversation: &str, now: Instant, act: impl FnOnce(&mut Recent) -> T) -> T {
        let mut all = self.recent.lock();
        if all.len() > MAX_CONVERSATIONS {
            all.retain(|_, recent| {
                recent.exchanges.back().is_some_and(|at| now - *at < MINUTE)
                    || recent.informed.is_some_and(|at| now - at < MINUTE)
            });
        }
        let recent = all.entry(conversation.to_owned()).or_default();
        while recent
            .exchanges
            .front()
            .is_some_and(|at| now - *at >= MINUTE)
        {
            recent.exchanges.pop_front();
        }
        act(recent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn excess_is_refused_once_a_minute() {
        let exchanges = Exchanges::new(2);
        let now = Instant::now();
        let mut results = Vec::new();
        for _ in 0..4 {
            results.push(exchanges.begin("a", now));
        }
        use Exchange::{Permitted, Refused, Silent};
        assert_eq!(results, [Permitted, Permitted, Refused, Silent]);
        assert_eq!(exchanges.begin("b", now), Permitted);
        assert_eq!(exchanges.begin("a", now + MINUTE), Permitted);
        assert_eq!(Exchanges::new(0).begin("a", now), Permitted);
    }
}
