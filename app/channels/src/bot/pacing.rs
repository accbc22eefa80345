//! Rate limits of an account, observed ahead of the platform's refusals.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::platform::Rates;

/// Calls per minute of a group that are reserved for final texts.
const RESERVED_PER_MINUTE: usize = 6;
/// Number of chats beyond which unused ones are forgotten.
const MAX_CHATS: usize = 1_024;
const MINUTE: Duration = Duration::from_secs(60);
const SECOND: Duration = Duration::from_secs(1);

/// Purpose of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// A message that must arrive.
    Final,
    /// An update that a later one replaces.
    Live,
}

#[derive(Debug, Default)]
struct Budget {
    account: VecDeque<Instant>,
    closed_until: Option<Instant>,
    chats: HashMap<String, Chat>,
}

#[derive(Debug, Default)]
struct Chat {
    calls: VecDeque<Instant>,
    closed_until: Option<Instant>,
}

/// Budget of calls.
#[derive(Debug)]
pub(crate) struct Pacing {
    rates: Rates,
    budget: Mutex<Budget>,
}

impl Pacing {
    /// Creates an unused budget.
    pub(crate) fn new(rates: Rates) -> Self {
        Self {
            rates,
            budget: Mutex::default(),
        }
    }

    /// Counts a call for a chat, or returns the time from which it is permitted.
    pub(crate) fn take(
        &self,
        chat: &str,
        is_group: bool,
        purpose: Purpose,
        now: Instant,
    ) -> Result<(), Instant> {
        let mut budget = self.budget.lock();
        let budget = &mut *budget;
        forget_before(&mut budget.account, now, SECOND);
        let mut permitted = budget.closed_until.unwrap_or(now).max(now);
        let max_account = self.rates.account_per_second.max(1) as usize;
        if budget.account.len() >= max_account {
            permitted = permitted.max(budget.account[0] + SECOND);
        }
        if budget.chats.len() > MAX_CHATS {
            budget.chats.retain(|_, chat| chat.is_used(now));
        }
        let of_chat = budget.chats.entry(chat.to_owned()).or_default();
        forget_before(&mut of_chat.calls, now, MINUTE);
        permitted = permitted.max(of_chat.closed_until.unwrap_or(now));
        if let Some(last) = of_chat.calls.back() {
            permitted = permitted.max(*last + self.rates.chat_interval);
        }
        if let Some(max) = self.rates.group_per_minute.filter(|_| is_group) {
            let max = max as usize;
            let max = match purpose {
                Purpose::Final => max.max(1),
                Purpose::Live => max.saturating_sub(RESERVED_PER_MINUTE).max(1),
            };
            if of_chat.calls.len() >= max {
                permitted = permitted.max(of_chat.calls[of_chat.calls.len() - max] + MINUTE);
            }
        }
        if permitted > now {
            return Err(permitted);
        }
        budget.account.push_back(now);
        of_chat.calls.push_back(now);
        Ok(())
    }

    /// Counts a sign in a chat. Returns `false` if it has to be omitted: the platform has refused
    /// calls, or half of the account's rate is in use. The other half is reserved for texts, so that
    /// signs do not delay them.
    pub(crate) fn take_sign(&self, chat: &str, now: Instant) -> bool {
        if self.is_closed(chat, now) {
            return false;
        }
        if !self.rates.counts_signs {
            return true;
        }
        let mut budget = self.budget.lock();
        forget_before(&mut budget.account, now, SECOND);
        let is_permitted = budget.account.len() < self.rates.account_per_second as usize / 2;
        if is_permitted {
            budget.account.push_back(now);
        }
        is_permitted
    }

    /// Reports whether the platform has refused calls for a chat.
    pub(crate) fn is_closed(&self, chat: &str, now: Instant) -> bool {
        let budget = self.budget.lock();
        let of_chat = budget.chats.get(chat).and_then(|chat| chat.closed_until);
        of_chat
            .max(budget.closed_until)
            .is_some_and(|until| until > now)
    }

    /// Returns the time until which the platform refuses all calls of the account.
    pub(crate) fn account_closed_until(&self) -> Option<Instant> {
        self.budget.lock().closed_until
    }

    /// Permits no call for a chat until a time.
    pub(crate) fn close_chat(&self, chat: &str, until: Instant) {
        let mut budget = self.budget.lock();
        let of_chat = budget.chats.entry(chat.to_owned()).or_default();
        of_chat.closed_until = of_chat.closed_until.max(Some(until));
    }

    /// Permits no call of the account until a time.
    pub(crate) fn close_account(&self, until: Instant) {
        let mut budget = self.budget.lock();
        budget.closed_until = budget.closed_until.max(Some(until));
    }
}

impl Chat {
    fn is_used(&self, now: Instant) -> bool {
        self.closed_until.is_some_and(|until| until > now)
            || self.calls.back().is_some_and(|last| *last + MINUTE > now)
    }
}

fn forget_before(calls: &mut VecDeque<Instant>, now: Instant, period: Duration) {
    while calls.front().is_some_and(|call| *call + period <= now) {
        calls.pop_front();
    }
}

#[cfg(test)]
#[path = "pacing_tests.rs"]
mod tests;
