//! Requirements of sessions.

use chrono::TimeDelta;
use deerflow_runtime::testkit::at;
use uuid::Uuid;

use super::{AccountSuite, actions, admin_and_ann, entry, session, start};
use crate::accounts::{
    Account, AccountChange, AccountError, AccountStores, AuditAction, IDLE_END, NewSession,
    PasswordHash, Session, SessionsAfter, TokenHash,
};

async fn found(stores: &AccountStores, n: u128) -> Option<(Session, Account)> {
    let hash = TokenHash::of(&format!("token {n}"));
    stores.sessions.find(&hash).await.expect("read")
}

/// Returns the numbers of the valid sessions of `ann`, the newest first.
async fn valid(stores: &AccountStores) -> Vec<u128> {
    let sessions = stores.sessions.list("ann", at(100)).await.expect("read");
    sessions
        .iter()
        .map(|session| session.id.as_u128())
        .collect()
}

/// A session does not start for an absent or disabled account, or after the password changed.
pub async fn session_starts_only_for_verified_enabled_account(
    open: impl AsyncFn() -> AccountSuite,
) {
    let suite = open().await;
    let stores = suite.stores.clone();
    let (_, ann) = admin_and_ann(&stores).await;
    let start = async |user: &str, if_password| {
        let session = session(1, user, 3);
        let new = NewSession {
            session,
            if_password,
        };
        stores
            .sessions
            .start(new, entry(AuditAction::SignIn, 3))
            .await
    };
    let wrong = Some(PasswordHash::new("other"));
    assert_eq!(start("bob", None).await, Err(AccountError::NotFound));
    assert_eq!(
        start("ann", wrong).await,
        Err(AccountError::PasswordChanged)
    );
    let change = AccountChange {
        disabled: Some(true),
        ..AccountChange::default()
    };
    let disable =
        stores
            .accounts
            .change("ann", change.clone(), SessionsAfter::EndAll, vec![], at(2));
    assert!(disable.await.is_ok());
    assert_eq!(start("ann", None).await, Err(AccountError::Disabled));
    assert!(!actions(&stores).await.contains(&AuditAction::SignIn));
    let enable = AccountChange {
        disabled: Some(false),
        ..change
    };
    let enable = stores
        .accounts
        .change("ann", enable, SessionsAfter::Unchanged, vec![], at(2));
    assert!(enable.await.is_ok());
    let started = start("ann", ann.password_hash).await.expect("started");
    assert_eq!(started.last_login_at, Some(at(3)));
    assert_eq!(started.updated_at, at(2));
    let expected = Session {
        user_agent: None,
        ..session(1, "ann", 3)
    };
    assert_eq!(found(&stores, 1).await, Some((expected, started)));
    assert_eq!(actions(&stores).await.last(), Some(&AuditAction::SignIn));
}

/// An end on one node holds on the other.
pub async fn ended_session_is_not_found(open: impl AsyncFn() -> AccountSuite) {
    let suite = open().await;
    let stores = suite.stores.clone();
    admin_and_ann(&stores).await;
    for n in 1..=4 {
        let full = Session {
            persistent: n % 2 == 0,
            user_agent: Some("Firefox ü".to_owned()),
            address: Some("10.0.0.7".to_owned()),
            ..session(n, "ann", 1)
        };
        start(&stores, full.clone()).await;
        assert_eq!(
            found(&stores, n).await.map(|(session, _)| session),
            Some(full)
        );
    }
    start(&stores, session(9, "default", 1)).await;
    let end_all = async |but| {
        let entry = entry(AuditAction::SessionEnded, 2);
        let sessions = &suite.other_node.sessions;
        sessions.end_all("ann", but, entry).await
    };
    assert_eq!(end_all(Some(Uuid::from_u128(2))).await, Ok(3));
    assert_eq!(valid(&stores).await, [2]);
    assert_eq!(found(&stores, 1).await, None);
    assert_eq!(end_all(None).await, Ok(1));
    let before = actions(&stores).await;
    assert_eq!(end_all(None).await, Ok(0));
    assert_eq!(actions(&stores).await, before);
    assert!(found(&stores, 9).await.is_some());
}

/// A session of another user is not ended.
pub async fn session_of_owner_is_ended_once(open: impl AsyncFn() -> AccountSuite) {
    let suite = open().await;
    let stores = suite.stores.clone();
    admin_and_ann(&stores).await;
    start(&stores, session(1, "ann", 1)).await;
    let before = actions(&stores).await.len();
    let end = async |user: &str| {
        let entry = entry(AuditAction::SessionEnded, 2);
        stores.sessions.end(user, Uuid::from_u128(1), entry).await
    };
    assert_eq!(end("default").await, Ok(false));
    assert_eq!(end("ann").await, Ok(true));
    assert_eq!(end("ann").await, Ok(false));
    assert_eq!(found(&stores, 1).await, None);
    assert_eq!(actions(&stores).await.len(), before + 1);
}

/// All, none, all but one, or all in exchange for a new one.
pub async fn change_ends_the_named_sessions(open: impl AsyncFn() -> AccountSuite) {
    let suite = open().await;
    let stores = suite.stores.clone();
    admin_and_ann(&stores).await;
    for n in 1..=3 {
        start(&stores, session(n, "ann", n as i64)).await;
    }
    start(&stores, session(9, "default", 1)).await;
    let change = async |sessions| {
        let change = AccountChange {
            needs_setup: Some(false),
            ..AccountChange::default()
        };
        let entries = vec![
            entry(AuditAction::PasswordChanged, 5),
            entry(AuditAction::SessionEnded, 5),
        ];
        let changed = stores
            .accounts
            .change("ann", change, sessions, entries, at(5));
        assert!(changed.await.is_ok());
    };
    change(SessionsAfter::Unchanged).await;
    assert_eq!(valid(&stores).await, [3, 2, 1]);
    change(SessionsAfter::EndAllBut(Uuid::from_u128(2))).await;
    assert_eq!(valid(&stores).await, [2]);
    let replacement = session(4, "ann", 6);
    change(SessionsAfter::Replace(Box::new(replacement.clone()))).await;
    assert_eq!(valid(&stores).await, [4]);
    assert_eq!(
        found(&stores, 4).await.map(|(session, _)| session),
        Some(replacement)
    );
    change(SessionsAfter::EndAll).await;
    assert_eq!(valid(&stores).await, Vec::<u128>::new());
    assert!(found(&stores, 9).await.is_some());
    assert_eq!(
        actions(&stores).await[6..],
        [AuditAction::PasswordChanged, AuditAction::SessionEnded].repeat(4)
    );
}

/// Extension changes the end; only sessions that have ended by time are deleted.
pub async fn sessions_are_listed_extended_and_purged(open: impl AsyncFn() -> AccountSuite) {
    let suite = open().await;
    let stores = suite.stores.clone();
    admin_and_ann(&stores).await;
    for n in 1..=2 {
        start(&stores, session(n, "ann", n as i64)).await;
    }
    let later = at(0) + TimeDelta::days(5);
    let sessions = &stores.sessions;
    let first = Uuid::from_u128(1);
    assert_eq!(sessions.extend(first, later).await, Ok(true));
    assert_eq!(sessions.extend(first, at(3)).await, Ok(true));
    assert_eq!(sessions.extend(Uuid::nil(), later).await, Ok(false));
    let extended = Session {
        last_used_at: later,
        ..session(1, "ann", 1)
    };
    let after_second = at(2) + IDLE_END;
    assert_eq!(sessions.list("ann", after_second).await, Ok(vec![extended]));
    assert_eq!(sessions.purge(at(1) + IDLE_END).await, Ok(0));
    assert_eq!(sessions.purge(after_second).await, Ok(1));
    assert_eq!(found(&stores, 2).await, None);
    assert_eq!(sessions.purge(later + IDLE_END).await, Ok(1));
}
