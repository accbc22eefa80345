//! Requirements of concurrent changes.

use deerflow_runtime::testkit::at;
use futures_util::future::join_all;

use super::limits::attempt;
use super::{AccountSuite, create, email, entry, new_account};
use crate::accounts::{
    AccountChange, AccountError, AccountQuery, Admission, AuditAction, LoginVerdict, NewAccount,
    Role, SessionsAfter,
};

/// Of 50 concurrent initializations with different e-mails one takes effect.
pub async fn concurrent_initializations_create_one_administrator(
    open: impl AsyncFn() -> AccountSuite,
) {
    let suite = open().await;
    let stores = suite.stores.clone();
    let initialize = |n: usize| {
        let accounts = suite.node(n).accounts.clone();
        let new = NewAccount {
            admission: Admission::NoAdministrator,
            ..new_account(&format!("u{n}"), Role::Admin)
        };
        async move {
            accounts
                .create(new, entry(AuditAction::AccountCreated, 1))
                .await
        }
    };
    let results = join_all((0..50).map(initialize)).await;
    let created: Vec<_> = results
        .iter()
        .filter_map(|result| result.as_ref().ok())
        .collect();
    assert_eq!(created.len(), 1, "{results:?}");
    assert_eq!(created[0].id, "default");
    assert!(
        results
            .iter()
            .all(|result| { matches!(result, Ok(_) | Err(AccountError::AdministratorExists)) })
    );
    let census = stores.accounts.census().await.expect("read");
    assert_eq!((census.accounts, census.administrators), (1, 1));
}

/// Concurrent registrations of one e-mail create one account, and the others are refused.
pub async fn concurrent_registrations_of_email_create_one(open: impl AsyncFn() -> AccountSuite) {
    let suite = open().await;
    let stores = suite.stores.clone();
    let register = |n: usize| {
        let accounts = suite.node(n).accounts.clone();
        let new = NewAccount {
            email: email("same@example.org"),
            ..new_account(&format!("u{n}"), Role::User)
        };
        async move {
            accounts
                .create(new, entry(AuditAction::AccountCreated, 1))
                .await
        }
    };
    let results = join_all((0..20).map(register)).await;
    let refused = results
        .iter()
        .filter(|result| **result == Err(AccountError::EmailTaken));
    assert_eq!(refused.count(), 19, "{results:?}");
    let query = AccountQuery {
        limit: 9,
        ..AccountQuery::default()
    };
    let page = stores.accounts.list(&query).await.expect("read");
    assert_eq!(page.total, 1);
}

/// Administrators that demote, disable and delete each other at the same time leave one.
pub async fn administrators_racing_to_demote_each_other_leave_one(
    open: impl AsyncFn() -> AccountSuite,
) {
    let suite = open().await;
    let stores = suite.stores.clone();
    create(&stores, new_account("root", Role::Admin)).await;
    for n in 0..5 {
        create(&stores, new_account(&format!("a{n}"), Role::Admin)).await;
    }
    let remove = |(n, id): (usize, String)| {
        let accounts = suite.node(n).accounts.clone();
        async move {
            let change = AccountChange {
                role: (n % 3 == 0).then_some(Role::User),
                disabled: (n % 3 == 1).then_some(true),
                ..AccountChange::default()
            };
            if n % 3 == 2 {
                return accounts
                    .delete(&id, entry(AuditAction::AccountDeleted, 2))
                    .await;
            }
            let sessions = SessionsAfter::EndAll;
            accounts
                .change(&id, change, sessions, vec![], at(2))
                .await
                .map(drop)
        }
    };
    let ids = (0..5)
        .map(|n| format!("a{n}"))
        .chain(["default".to_owned()]);
    let results = join_all(ids.enumerate().map(remove)).await;
    let refused: Vec<_> = results
        .iter()
        .filter_map(|result| result.as_ref().err())
        .collect();
    assert_eq!(refused, [&AccountError::LastAdministrator], "{results:?}");
}

/// Of many concurrent attempts on an account, at most five may verify a password.
pub async fn concurrent_attempts_do_not_exceed_limit(open: impl AsyncFn() -> AccountSuite) {
    let suite = open().await;
    let begin = |n: usize| {
        let limits = suite.node(n).limits.clone();
        async move { limits.begin(&attempt(n as u128, "ann", 1), at(0)).await }
    };
    let verdicts = join_all((0..20).map(begin)).await;
    let permitted = verdicts
        .iter()
        .filter(|verdict| **verdict == Ok(LoginVerdict::Verify));
    assert_eq!(permitted.count(), 5, "{verdicts:?}");
    assert!(verdicts.iter().all(Result::is_ok), "{verdicts:?}");
}
