//! Rate limits of an account, observed ahead of the platform's refusals.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::calls::{ACTIVE_DELAY, Calls};
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
    account: Calls,
    closed_until: Option<Instant>,
    chats: HashMap<String, Chat>,
}

impl Budget {
    /// Counts a call of the account, and of a chat that has an entry.
    fn begin(&mut self, chat: Option<&str>) {
        self.account.begin();
        if let Some(chat) = chat.and_then(|chat| self.chats.get_mut(chat)) {
            chat.calls.begin();
        }
    }

    /// Ends a call that was counted.
    fn end(&mut self, chat: Option<&str>, now: Instant) {
        self.account.end(now);
        if let Some(chat) = chat.and_then(|chat| self.chats.get_mut(chat)) {
            chat.calls.end(now);
        }
    }

    /// Returns the time from which the account permits a call.
    fn account_permitted(&mut self, rates: &Rates, now: Instant) -> Instant {
        self.account.expire(now, SECOND);
        let max = rates.account_per_second.max(1) as usize;
        let permitted = self.account.permitted(max, now, SECOND);
        permitted.max(self.closed_until.unwrap_or(now))
    }
}

#[derive(Debug, Default)]
struct Chat {
    calls: Calls,
    closed_until: Option<Instant>,
}

/// Permitted call. It counts from the permission until a period after its end: a call that is
/// delayed on its way arrives before its answer, so never together with more calls than permitted.
#[derive(Debug)]
#[must_use]
pub(crate) struct Permit {
    /// `None` for a call that does not count.
    budget: Option<Arc<Mutex<Budget>>>,
    /// Chat, for a call that counts there.
    chat: Option<String>,
}

impl Permit {
    /// Creates the permit of a call that does not count.
    fn uncounted() -> Self {
        Self {
            budget: None,
            chat: None,
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let Some(budget) = &self.budget else {
            return;
        };
        budget.lock().end(self.chat.as_deref(), Instant::now());
    }
}

/// Budget of calls.
#[derive(Debug)]
pub(crate) struct Pacing {
    rates: Rates,
    budget: Arc<Mutex<Budget>>,
}

impl Pacing {
    /// Creates an unused budget.
    pub(crate) fn new(rates: Rates) -> Self {
        Self {
            rates,
            budget: Arc::default(),
        }
    }

    /// Permits a call for a chat, or returns the time at which to ask again.
    pub(crate) fn take(
        &self,
        chat: &str,
        is_group: bool,
        purpose: Purpose,
        now: Instant,
    ) -> Result<Permit, Instant> {
        let mut budget = self.budget.lock();
        let budget = &mut *budget;
        let mut permitted = budget.account_permitted(&self.rates, now);
        if budget.chats.len() > MAX_CHATS {
            budget.chats.retain(|_, chat| chat.is_used(now));
        }
        let of_chat = budget.chats.entry(chat.to_owned()).or_default();
        of_chat.calls.expire(now, MINUTE);
        permitted = permitted.max(of_chat.closed_until.unwrap_or(now));
        if of_chat.calls.has_active() {
            permitted = permitted.max(now + ACTIVE_DELAY);
        }
        if let Some(last) = of_chat.calls.last_end() {
            permitted = permitted.max(last + self.rates.chat_interval);
        }
        if let Some(max) = self.rates.group_per_minute.filter(|_| is_group) {
            let max = max as usize;
            let max = match purpose {
                Purpose::Final => max.max(1),
                Purpose::Live => max.saturating_sub(RESERVED_PER_MINUTE).max(1),
            };
            permitted = permitted.max(of_chat.calls.permitted(max, now, MINUTE));
        }
        if permitted > now {
            return Err(permitted);
        }
        Ok(self.permit(budget, Some(chat)))
    }

    /// Permits the preparation of a message, which counts for the account and not for its chat, or
    /// returns the time at which to ask again.
    pub(crate) fn take_preparation(&self, now: Instant) -> Result<Permit, Instant> {
        let mut budget = self.budget.lock();
        let permitted = budget.account_permitted(&self.rates, now);
        if permitted > now {
            return Err(permitted);
        }
        Ok(self.permit(&mut budget, None))
    }

    /// Permits a sign in a chat. Returns `None` if it has to be omitted: the platform has refused
    /// calls, or half of the account's rate is in use. The other half is reserved for texts, so that
    /// signs do not delay them.
    pub(crate) fn take_sign(&self, chat: &str, now: Instant) -> Option<Permit> {
        if self.is_closed(chat, now) {
            return None;
        }
        if !self.rates.counts_signs {
            return Some(Permit::uncounted());
        }
        let mut budget = self.budget.lock();
        budget.account.expire(now, SECOND);
        let is_reserved = budget.account.count() >= self.rates.account_per_second as usize / 2;
        (!is_reserved).then(|| self.permit(&mut budget, None))
    }

    fn permit(&self, budget: &mut Budget, chat: Option<&str>) -> Permit {
        budget.begin(chat);
        Permit {
            budget: Some(self.budget.clone()),
            chat: chat.map(str::to_owned),
        }
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
            || self.calls.has_active()
            || self
                .calls
                .last_end()
                .is_some_and(|last| last + MINUTE > now)
    }
}

#[cfg(test)]
#[path = "pacing_tests.rs"]
mod tests;
