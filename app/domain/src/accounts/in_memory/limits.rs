//! Limits of sign-in in memory.

use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use deerflow_runtime::runs::store::StoreError;

use super::{AccountTables, Attempt, InMemoryAccounts};
use crate::accounts::address::AddressKey;
use crate::accounts::audit::{AuditAction, AuditOutcome, NewAuditEntry};
use crate::accounts::login_limits::{
    ACCOUNT_RULE, ADDRESS_FAILURES, ADDRESS_WINDOW, AttemptKey, FailureRun, LoginCounters,
    LoginLimitStore, LoginVerdict, PAIR_RULE, PENDING_TIMEOUT, REGISTRATION_WINDOW, decide_login,
    registration_wait,
};

impl AccountTables {
    /// Counts the selected attempts: failures since `since`, and other attempts in progress.
    fn run_of(
        &self,
        own: &AttemptKey,
        since: DateTime<Utc>,
        at: DateTime<Utc>,
        selects: impl Fn(&AttemptKey) -> bool,
    ) -> (FailureRun, Vec<DateTime<Utc>>) {
        let selected = || {
            self.attempts
                .values()
                .filter(|attempt| selects(&attempt.key))
        };
        let mut failures: Vec<DateTime<Utc>> = selected()
            .filter(|attempt| attempt.failed && attempt.at > since)
            .map(|attempt| attempt.at)
            .collect();
        failures.sort_unstable();
        let pending = selected().filter(|attempt| {
            !attempt.failed && attempt.at > at - PENDING_TIMEOUT && attempt.key.id != own.id
        });
        let run = FailureRun {
            count: u32::try_from(failures.len()).unwrap_or(u32::MAX),
            last_at: failures.last().copied(),
            pending: u32::try_from(pending.count()).unwrap_or(u32::MAX),
        };
        (run, failures)
    }

    fn counters(&self, key: &AttemptKey, at: DateTime<Utc>) -> LoginCounters {
        let (pair, _) = self.run_of(key, at - PAIR_RULE.memory, at, |other| {
            other.subject == key.subject && other.address == key.address
        });
        let (account, _) = self.run_of(key, at - ACCOUNT_RULE.memory, at, |other| {
            other.subject == key.subject
        });
        let (address, failures) = self.run_of(key, at - ADDRESS_WINDOW, at, |other| {
            other.address == key.address
        });
        LoginCounters {
            pair,
            account,
            address,
            address_full_since: failures
                .iter()
                .rev()
                .nth(ADDRESS_FAILURES as usize - 1)
                .copied(),
            known: self
                .known
                .contains_key(&(key.subject.clone(), key.address.clone())),
        }
    }
}

#[async_trait]
impl LoginLimitStore for InMemoryAccounts {
    async fn begin(&self, key: &AttemptKey, at: DateTime<Utc>) -> Result<LoginVerdict, StoreError> {
        let mut tables = self.0.lock();
        let verdict = decide_login(&tables.counters(key, at), at);
        if verdict == LoginVerdict::Verify {
            let attempt = Attempt {
                key: key.clone(),
                at,
                failed: false,
            };
            tables.attempts.insert(key.id, attempt);
        }
        Ok(verdict)
    }

    async fn fail(
        &self,
        key: &AttemptKey,
        entry: NewAuditEntry,
    ) -> Result<Option<Duration>, StoreError> {
        let mut tables = self.0.lock();
        let at = entry.at;
        let attempt = Attempt {
            key: key.clone(),
            at,
            failed: true,
        };
        tables.attempts.insert(key.id, attempt);
        let lock = tables
            .counters(key, at)
            .pair
            .locked_until(PAIR_RULE)
            .and_then(|end| (end - at).to_std().ok());
        if lock.is_some() {
            tables.append(entry.clone());
            tables.append(NewAuditEntry {
                action: AuditAction::SignInLocked,
                outcome: AuditOutcome::Refused,
                ..entry
            });
        } else {
            tables.append(entry);
        }
        Ok(lock)
    }

    async fn succeed(&self, key: &AttemptKey, at: DateTime<Utc>) -> Result<(), StoreError> {
        let mut tables = self.0.lock();
        tables.attempts.retain(|id, attempt| {
            let same = attempt.key.subject == key.subject && attempt.key.address == key.address;
            *id != key.id && !(same && attempt.failed)
        });
        tables
            .known
            .insert((key.subject.clone(), key.address.clone()), at);
        Ok(())
    }

    async fn withdraw(&self, key: &AttemptKey) -> Result<(), StoreError> {
        self.0.lock().attempts.remove(&key.id);
        Ok(())
    }

    async fn register(
        &self,
        address: &AddressKey,
        limit: u32,
        at: DateTime<Utc>,
    ) -> Result<Option<Duration>, StoreError> {
        if limit == 0 {
            return Ok(None);
        }
        let mut tables = self.0.lock();
        let mut times: Vec<DateTime<Utc>> = tables
            .registrations
            .iter()
            .filter(|(other, time)| other == address && *time > at - REGISTRATION_WINDOW)
            .map(|(_, time)| *time)
            .collect();
        times.sort_unstable();
        let full_since = times.iter().rev().nth(limit as usize - 1).copied();
        let wait = registration_wait(full_since, at);
        if wait.is_none() {
            tables.registrations.push((address.clone(), at));
        }
        Ok(wait)
    }

    async fn purge(
        &self,
        at: DateTime<Utc>,
        known_before: DateTime<Utc>,
    ) -> Result<u64, StoreError> {
        let mut tables = self.0.lock();
        let size = |tables: &AccountTables| {
            tables.attempts.len() + tables.known.len() + tables.registrations.len()
        };
        let before = size(&tables);
        tables
            .attempts
            .retain(|_, attempt| attempt.at > at - PAIR_RULE.memory);
        tables.known.retain(|_, time| *time >= known_before);
        tables
            .registrations
            .retain(|(_, time)| *time > at - REGISTRATION_WINDOW);
        Ok((before - size(&tables)) as u64)
    }
}
