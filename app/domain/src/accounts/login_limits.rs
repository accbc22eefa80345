//! Limits of sign-in and registration: counters, the decision over them, and the port.
//!
//! An attempt is recorded before its password is verified, so that concurrent attempts cannot
//! exceed a limit. Attempts are counted per account and address, per address, and per account over
//! all addresses. An address from which the account signed in before is exempt: no other person
//! can lock its owner out.

use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use deerflow_runtime::runs::store::StoreError;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::address::AddressKey;
use super::audit::NewAuditEntry;

/// Failures per address within [`ADDRESS_WINDOW`], over all accounts.
pub const ADDRESS_FAILURES: u32 = 50;
/// Window of the limit per address.
pub const ADDRESS_WINDOW: TimeDelta = TimeDelta::minutes(15);
/// Window of the limit of registrations per address.
pub const REGISTRATION_WINDOW: TimeDelta = TimeDelta::hours(1);
/// Time after which an attempt without a result is ignored: its process has died.
pub const PENDING_TIMEOUT: TimeDelta = TimeDelta::seconds(30);

/// Rule of consecutive failures: after `free` failures each further one locks for a time that
/// doubles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunRule {
    /// Failures without a lock; the last of them sets the first lock.
    pub free: u32,
    /// Duration of the first lock.
    pub first: TimeDelta,
    /// Maximum duration of a lock.
    pub cap: TimeDelta,
    /// Time after which failures no longer count.
    pub memory: TimeDelta,
}

/// Rule per account and address.
pub const PAIR_RULE: RunRule = RunRule {
    free: 5,
    first: TimeDelta::seconds(30),
    cap: TimeDelta::minutes(15),
    memory: TimeDelta::hours(24),
};

/// Rule per account over all addresses, for addresses without an earlier sign-in.
pub const ACCOUNT_RULE: RunRule = RunRule {
    free: 20,
    first: TimeDelta::seconds(5),
    cap: TimeDelta::minutes(5),
    memory: TimeDelta::hours(1),
};

/// Failures since the last success, within the memory of their rule, and attempts in progress.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FailureRun {
    /// Number of failures.
    pub count: u32,
    /// Time of the last failure.
    pub last_at: Option<DateTime<Utc>>,
    /// Attempts in progress, without this one.
    pub pending: u32,
}

impl FailureRun {
    /// Returns the end of the lock that the failures cause.
    pub fn locked_until(&self, rule: RunRule) -> Option<DateTime<Utc>> {
        let doublings = self.count.checked_sub(rule.free)?.min(30);
        let duration = (rule.first * (1 << doublings)).min(rule.cap);
        self.last_at.map(|last| last + duration)
    }

    /// Reports whether the attempts in progress, if all fail, leave no room for one more.
    fn is_exhausted(&self, rule: RunRule) -> bool {
        self.pending > 0 && self.count + self.pending >= rule.free
    }
}

/// Counters that concern one attempt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LoginCounters {
    /// Of the account and the address.
    pub pair: FailureRun,
    /// Of the account over all addresses.
    pub account: FailureRun,
    /// Failures of the address within [`ADDRESS_WINDOW`], and attempts in progress.
    pub address: FailureRun,
    /// Time of the [`ADDRESS_FAILURES`]-th newest failure of the address, if there are as many.
    pub address_full_since: Option<DateTime<Utc>>,
    /// `true` if the account signed in from the address before.
    pub known: bool,
}

/// Decision about an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoginVerdict {
    /// The password may be verified; the attempt is recorded as pending.
    Verify,
    /// Attempts in progress may use up the limit: ask again when one of them has ended.
    Wait,
    /// Refused.
    Refuse {
        /// Time after which an attempt is possible.
        retry_after: Duration,
    },
}

/// Decides about an attempt at `at`.
pub fn decide_login(counters: &LoginCounters, at: DateTime<Utc>) -> LoginVerdict {
    if counters.known {
        return LoginVerdict::Verify;
    }
    let ends = [
        counters.pair.locked_until(PAIR_RULE),
        counters.account.locked_until(ACCOUNT_RULE),
        counters
            .address_full_since
            .map(|since| since + ADDRESS_WINDOW),
    ];
    if let Some(retry_after) = ends
        .into_iter()
        .flatten()
        .filter_map(|end| remaining(end, at))
        .max()
    {
        return LoginVerdict::Refuse { retry_after };
    }
    let address = &counters.address;
    let address_exhausted =
        address.pending > 0 && address.count + address.pending >= ADDRESS_FAILURES;
    if address_exhausted
        || counters.pair.is_exhausted(PAIR_RULE)
        || counters.account.is_exhausted(ACCOUNT_RULE)
    {
        LoginVerdict::Wait
    } else {
        LoginVerdict::Verify
    }
}

/// Returns the time until `end`, or `None` if it has passed.
fn remaining(end: DateTime<Utc>, at: DateTime<Utc>) -> Option<Duration> {
    (end - at).to_std().ok().filter(|left| !left.is_zero())
}

/// Returns the time until a registration is possible, given the time of the oldest registration
/// that has to leave the window first.
pub fn registration_wait(full_since: Option<DateTime<Utc>>, at: DateTime<Utc>) -> Option<Duration> {
    remaining(full_since? + REGISTRATION_WINDOW, at)
}

/// Attempt to sign in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptKey {
    /// Id of the attempt.
    pub id: Uuid,
    /// SHA-256 of the account's id, or of the entered e-mail if there is no account. People enter
    /// passwords into the wrong field, so the text is not stored.
    pub subject: String,
    /// Address.
    pub address: AddressKey,
}

impl AttemptKey {
    /// Creates the key of an attempt on an account's id or on an unknown e-mail.
    pub fn new(id: Uuid, subject: &str, address: AddressKey) -> Self {
        Self {
            id,
            subject: hex::encode(Sha256::digest(subject.as_bytes())),
            address,
        }
    }
}

/// Counts attempts for all nodes.
#[async_trait]
pub trait LoginLimitStore: Send + Sync + std::fmt::Debug {
    /// Decides about an attempt and, if its password may be verified, records it as pending, in one
    /// transaction.
    async fn begin(&self, key: &AttemptKey, at: DateTime<Utc>) -> Result<LoginVerdict, StoreError>;

    /// Records a wrong password and writes the entry, and one of the lock if the failure causes
    /// one. Returns the duration of the lock of this account and address.
    async fn fail(
        &self,
        key: &AttemptKey,
        entry: NewAuditEntry,
    ) -> Result<Option<Duration>, StoreError>;

    /// Records a right password: deletes the failures of the account from this address, and
    /// exempts the address for this account from now on.
    async fn succeed(&self, key: &AttemptKey, at: DateTime<Utc>) -> Result<(), StoreError>;

    /// Removes a pending attempt whose password was not verified.
    async fn withdraw(&self, key: &AttemptKey) -> Result<(), StoreError>;

    /// Counts a registration from an address. Returns the time to wait if there were `limit` within
    /// [`REGISTRATION_WINDOW`]; the registration is not counted then. 0 means no limit.
    async fn register(
        &self,
        address: &AddressKey,
        limit: u32,
        at: DateTime<Utc>,
    ) -> Result<Option<Duration>, StoreError>;

    /// Deletes attempts that no rule counts any more, and exemptions that were not used since
    /// `known_before`; returns their number.
    async fn purge(
        &self,
        at: DateTime<Utc>,
        known_before: DateTime<Utc>,
    ) -> Result<u64, StoreError>;
}

#[cfg(test)]
#[path = "login_limits_tests.rs"]
mod tests;
