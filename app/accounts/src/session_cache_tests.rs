//! Tests of the session cache.

use chrono::TimeDelta;
use deerflow_domain::accounts::{
    AccountChange, AccountStores, AuditAction, IDLE_END, InMemoryAccounts, NewAuditEntry,
    NewSession, SessionsAfter,
};
use deerflow_domain::testkit::accounts::{account, session};
use harness::clock::ManualClock;
use harness::testkit::at;

use super::*;

struct Rig {
    stores: AccountStores,
    clock: ManualClock,
    cache: SessionCache,
}

/// Returns a cache over stores with one session of `ann`, whose token is `token 1`.
async fn rig() -> Rig {
    let stores = Arc::new(InMemoryAccounts::default()).stores();
    let entry = NewAuditEntry::new(AuditAction::AccountImported, at(0));
    let ann = account("ann", "ann@example.org");
    stores
        .accounts
        .import(vec![ann], entry.clone())
        .await
        .unwrap();
    let new = NewSession {
        session: session(1, "ann", 0),
        if_password: None,
    };
    stores.sessions.start(new, entry).await.unwrap();
    let clock = ManualClock::starting_at(at(0));
    let cache = SessionCache::new(stores.sessions.clone(), Arc::new(clock.clone()));
    Rig {
        stores,
        clock,
        cache,
    }
}

impl Rig {
    async fn read(&self) -> Result<(), TokenError> {
        let read = self.cache.authenticate("token 1", SessionUse::Reads).await;
        read.map(drop)
    }

    async fn end(&self) {
        let entry = NewAuditEntry::new(AuditAction::SessionEnded, at(1));
        let ended = self.stores.sessions.end_all("ann", None, entry).await;
        assert_eq!(ended, Ok(1));
    }

    async fn last_used(&self) -> chrono::DateTime<chrono::Utc> {
        let hash = TokenHash::of("token 1");
        let found = self.stores.sessions.find(&hash).await.unwrap();
        found.unwrap().0.last_used_at
    }
}

#[tokio::test(start_paused = true)]
async fn session_ended_elsewhere_is_refused_within_a_second() {
    let rig = rig().await;
    assert_eq!(rig.read().await, Ok(()));
    rig.end().await;
    assert_eq!(rig.read().await, Ok(()));
    tokio::time::advance(MAX_AGE).await;
    assert!(MAX_AGE < Duration::from_secs(1));
    assert_eq!(rig.read().await, Err(TokenError::Unknown));
}

#[tokio::test(start_paused = true)]
async fn forgotten_session_is_read_again_at_once() {
    for by_user in [false, true] {
        let rig = rig().await;
        assert_eq!(rig.read().await, Ok(()));
        rig.end().await;
        if by_user {
            rig.cache.forget_user("ann");
        } else {
            rig.cache.forget(&TokenHash::of("token 1"));
        }
        assert_eq!(rig.read().await, Err(TokenError::Unknown));
    }
}

#[tokio::test(start_paused = true)]
async fn disabled_account_and_ended_session_are_refused() {
    let rig = rig().await;
    rig.clock.advance(IDLE_END);
    let ended = Err(TokenError::Refused(SessionRefusal::Ended));
    assert_eq!(rig.read().await, ended);
    rig.clock.advance(-IDLE_END);
    let disable = AccountChange {
        disabled: Some(true),
        ..AccountChange::default()
    };
    let sessions = SessionsAfter::Unchanged;
    let changed = rig
        .stores
        .accounts
        .change("ann", disable, sessions, vec![], at(1));
    changed.await.unwrap();
    tokio::time::advance(MAX_AGE).await;
    let disabled = Err(TokenError::Refused(SessionRefusal::AccountDisabled));
    assert_eq!(rig.read().await, disabled);
    let unknown = rig.cache.authenticate("token 2", SessionUse::Extends).await;
    assert_eq!(unknown, Err(TokenError::Unknown));
}

#[tokio::test(start_paused = true)]
async fn only_use_after_an_hour_extends_session() {
    let rig = rig().await;
    let usage = async |usage| {
        let used = rig.cache.authenticate("token 1", usage).await;
        assert!(used.is_ok());
        rig.last_used().await
    };
    rig.clock.advance(TimeDelta::minutes(59));
    assert_eq!(usage(SessionUse::Extends).await, at(0));
    rig.clock.advance(TimeDelta::minutes(1));
    assert_eq!(usage(SessionUse::Reads).await, at(0));
    let extended = at(0) + TimeDelta::hours(1);
    assert_eq!(usage(SessionUse::Extends).await, extended);
    rig.clock.advance(TimeDelta::minutes(30));
    assert_eq!(usage(SessionUse::Extends).await, extended);
}
