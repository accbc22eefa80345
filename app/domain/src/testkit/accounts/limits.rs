//! Requirements of the limits of sign-in and registration.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use deerflow_runtime::testkit::at;
use uuid::Uuid;

use super::{AccountSuite, actions, entry};
use crate::accounts::{
    ACCOUNT_RULE, ADDRESS_FAILURES, ADDRESS_WINDOW, AddressKey, AttemptKey, AuditAction,
    LoginLimitStore, LoginVerdict, PAIR_RULE, PENDING_TIMEOUT,
};

pub(super) fn address(last: u8) -> AddressKey {
    AddressKey::of([10, 0, 0, last].into())
}

pub(super) fn attempt(id: u128, subject: &str, last: u8) -> AttemptKey {
    AttemptKey::new(Uuid::from_u128(id), subject, address(last))
}

async fn begin(limits: &dyn LoginLimitStore, key: &AttemptKey, at: DateTime<Utc>) -> LoginVerdict {
    limits.begin(key, at).await.expect("written")
}

/// Records a failure, after a verdict that permits the attempt.
async fn fail(
    limits: &dyn LoginLimitStore,
    key: &AttemptKey,
    at: DateTime<Utc>,
) -> Option<Duration> {
    assert_eq!(
        begin(limits, key, at).await,
        LoginVerdict::Verify,
        "{key:?}"
    );
    let mut entry = entry(AuditAction::SignIn, 0);
    entry.at = at;
    limits.fail(key, entry).await.expect("written")
}

fn refused(duration: TimeDelta) -> LoginVerdict {
    LoginVerdict::Refuse {
        retry_after: duration.to_std().expect("positive"),
    }
}

/// Five failures lock for 30 s, a sixth for 60 s; other addresses and accounts are not concerned.
pub async fn failures_lock_pair_and_success_clears_them(open: impl AsyncFn() -> AccountSuite) {
    let suite = open().await;
    let stores = suite.stores.clone();
    let limits = &*stores.limits;
    for n in 0..4 {
        assert_eq!(fail(limits, &attempt(n, "ann", 1), at(0)).await, None);
    }
    let lock = fail(limits, &attempt(4, "ann", 1), at(0)).await;
    assert_eq!(lock, Some(Duration::from_secs(30)));
    let next = attempt(5, "ann", 1);
    assert_eq!(begin(limits, &next, at(0)).await, refused(PAIR_RULE.first));
    for (n, subject, last) in [(20, "bob", 1), (21, "ann", 2)] {
        let key = attempt(n, subject, last);
        assert_eq!(begin(limits, &key, at(0)).await, LoginVerdict::Verify);
    }
    let free = at(0) + PAIR_RULE.first;
    assert_eq!(
        fail(limits, &next, free).await,
        Some(Duration::from_secs(60))
    );
    let free = free + PAIR_RULE.first * 2;
    let key = attempt(6, "ann", 1);
    assert_eq!(begin(limits, &key, free).await, LoginVerdict::Verify);
    assert_eq!(limits.succeed(&key, free).await, Ok(()));
    assert_eq!(fail(limits, &attempt(7, "ann", 1), free).await, None);
    let recorded = actions(&stores).await;
    let locks = recorded
        .iter()
        .filter(|action| **action == AuditAction::SignInLocked);
    assert_eq!((recorded.len(), locks.count()), (9, 2));
}

/// No number of failures refuses an address from which the account signed in, until that is
/// forgotten.
pub async fn known_address_is_exempt(open: impl AsyncFn() -> AccountSuite) {
    let suite = open().await;
    let stores = suite.stores.clone();
    let limits = &*stores.limits;
    let first = attempt(0, "ann", 1);
    begin(limits, &first, at(0)).await;
    assert_eq!(limits.succeed(&first, at(1)).await, Ok(()));
    for n in 1..=60 {
        fail(limits, &attempt(n, "ann", 1), at(2)).await;
    }
    let known = attempt(100, "ann", 1);
    assert_eq!(begin(limits, &known, at(3)).await, LoginVerdict::Verify);
    assert_eq!(limits.withdraw(&known).await, Ok(()));
    assert!(matches!(
        begin(limits, &attempt(101, "bob", 1), at(3)).await,
        LoginVerdict::Refuse { .. }
    ));
    assert_eq!(limits.purge(at(3), at(1)).await, Ok(0));
    assert_eq!(limits.purge(at(3), at(2)).await, Ok(1));
    assert!(matches!(
        begin(limits, &known, at(3)).await,
        LoginVerdict::Refuse { .. }
    ));
}

/// The limit of an address holds over all accounts for 15 minutes.
pub async fn address_failures_refuse_all_accounts(open: impl AsyncFn() -> AccountSuite) {
    let suite = open().await;
    let limits = suite.stores.limits.clone();
    let limits = &*limits;
    for n in 0..u128::from(ADDRESS_FAILURES) {
        fail(limits, &attempt(n, &format!("user {n}"), 1), at(0)).await;
    }
    let next = attempt(1_000, "other", 1);
    assert_eq!(begin(limits, &next, at(0)).await, refused(ADDRESS_WINDOW));
    assert_eq!(
        begin(limits, &attempt(1_001, "other", 2), at(0)).await,
        LoginVerdict::Verify
    );
    assert_eq!(
        begin(limits, &next, at(0) + ADDRESS_WINDOW).await,
        LoginVerdict::Verify
    );
}

/// Failures from many addresses refuse a new address for some seconds, but not other accounts.
pub async fn strangers_are_slowed_down(open: impl AsyncFn() -> AccountSuite) {
    let suite = open().await;
    let limits = suite.stores.limits.clone();
    let limits = &*limits;
    for n in 0..ACCOUNT_RULE.free {
        let key = attempt(u128::from(n), "ann", u8::try_from(n).expect("few"));
        fail(limits, &key, at(0)).await;
    }
    let stranger = attempt(1_000, "ann", 200);
    assert_eq!(
        begin(limits, &stranger, at(0)).await,
        refused(ACCOUNT_RULE.first)
    );
    assert_eq!(
        begin(limits, &attempt(1_001, "bob", 200), at(0)).await,
        LoginVerdict::Verify
    );
    assert_eq!(
        begin(limits, &stranger, at(0) + ACCOUNT_RULE.memory).await,
        LoginVerdict::Verify
    );
}

/// Attempts in progress use up the limit until they are withdrawn or too old.
pub async fn withdrawn_and_old_attempts_do_not_count(open: impl AsyncFn() -> AccountSuite) {
    let suite = open().await;
    let limits = suite.stores.limits.clone();
    let limits = &*limits;
    for n in 0..5 {
        let key = attempt(n, "ann", 1);
        assert_eq!(begin(limits, &key, at(0)).await, LoginVerdict::Verify);
        // A repetition counts once.
        assert_eq!(begin(limits, &key, at(0)).await, LoginVerdict::Verify);
    }
    let next = attempt(5, "ann", 1);
    assert_eq!(begin(limits, &next, at(0)).await, LoginVerdict::Wait);
    assert_eq!(limits.withdraw(&attempt(0, "ann", 1)).await, Ok(()));
    assert_eq!(begin(limits, &next, at(0)).await, LoginVerdict::Verify);
    let last = attempt(6, "ann", 1);
    assert_eq!(begin(limits, &last, at(0)).await, LoginVerdict::Wait);
    let later = at(0) + PENDING_TIMEOUT;
    assert_eq!(begin(limits, &last, later).await, LoginVerdict::Verify);
    let purged = limits.purge(later + PAIR_RULE.memory, at(0)).await;
    assert_eq!(purged, Ok(6));
}

/// A refused registration is not counted; 0 means no limit.
pub async fn registrations_are_limited_per_address(open: impl AsyncFn() -> AccountSuite) {
    let suite = open().await;
    let limits = suite.stores.limits.clone();
    let register = async |last, limit, n| {
        let registered = limits.register(&address(last), limit, at(n)).await;
        registered.expect("written")
    };
    assert_eq!(register(1, 2, 0).await, None);
    assert_eq!(register(1, 2, 60).await, None);
    let wait = register(1, 2, 100).await.expect("refused");
    let first_leaves = (at(0) + TimeDelta::hours(1) - at(100)).to_std();
    assert_eq!(Ok(wait), first_leaves);
    assert_eq!(register(2, 2, 100).await, None);
    assert_eq!(register(1, 3, 100).await, None);
    assert_eq!(register(1, 0, 100).await, None);
    assert!(register(1, 3, 3_000).await.is_some());
    assert_eq!(register(1, 3, 3_601).await, None);
}
