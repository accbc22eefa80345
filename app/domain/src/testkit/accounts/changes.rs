//! Requirements of changed and deleted accounts.

use deerflow_runtime::testkit::at;

use super::{
    AccountSuite, actions, admin_and_ann, create, email, entry, new_account, session, start,
};
use crate::accounts::{
    Account, AccountChange, AccountError, AccountStores, AuditAction, PasswordHash,
    ProviderIdentity, Role, SessionsAfter, TokenHash,
};

async fn change(
    stores: &AccountStores,
    id: &str,
    change: AccountChange,
) -> Result<Account, AccountError> {
    let entries = vec![entry(AuditAction::RoleChanged, 5)];
    stores
        .accounts
        .change(id, change, SessionsAfter::EndAll, entries, at(5))
        .await
}

fn role(role: Role) -> AccountChange {
    AccountChange {
        role: Some(role),
        ..AccountChange::default()
    }
}

fn disabled(disabled: bool) -> AccountChange {
    AccountChange {
        disabled: Some(disabled),
        ..AccountChange::default()
    }
}

/// The e-mail and identity of another account are refused; the account's own are not.
pub async fn change_of_email_or_identity_respects_others(open: impl AsyncFn() -> AccountSuite) {
    let suite = open().await;
    let stores = suite.stores.clone();
    let (_, ann) = admin_and_ann(&stores).await;
    let identity = ProviderIdentity::new("p", "s");
    let linked = AccountChange {
        identity: identity.clone(),
        ..AccountChange::default()
    };
    let own_email = AccountChange {
        email: Some(ann.email.clone()),
        needs_setup: Some(true),
        ..linked.clone()
    };
    let changed = change(&stores, "ann", own_email).await.expect("written");
    assert_eq!((&changed.identity, changed.needs_setup), (&identity, true));
    assert_eq!(stores.accounts.find("ann").await, Ok(Some(changed)));
    let taken = AccountChange {
        email: Some(ann.email),
        ..AccountChange::default()
    };
    assert_eq!(
        change(&stores, "default", taken).await,
        Err(AccountError::EmailTaken)
    );
    assert_eq!(
        change(&stores, "default", linked).await,
        Err(AccountError::IdentityTaken)
    );
    let free = AccountChange {
        email: Some(email("Ann2@example.org")),
        ..AccountChange::default()
    };
    assert!(change(&stores, "ann", free).await.is_ok());
    let found = stores
        .accounts
        .find_by_email(&email("ann2@example.org"))
        .await;
    assert_eq!(found.map(|account| account.is_some()), Ok(true));
}

/// A refused change ends no session and writes no entry.
pub async fn change_refused_by_rule_writes_nothing(open: impl AsyncFn() -> AccountSuite) {
    let suite = open().await;
    let stores = suite.stores.clone();
    let (admin, _) = admin_and_ann(&stores).await;
    start(&stores, session(1, &admin.id, 1)).await;
    let before = actions(&stores).await;
    assert_eq!(
        change(&stores, &admin.id, role(Role::User)).await,
        Err(AccountError::LastAdministrator)
    );
    assert_eq!(
        change(&stores, "absent", role(Role::User)).await,
        Err(AccountError::NotFound)
    );
    assert_eq!(
        stores
            .accounts
            .find(&admin.id)
            .await
            .map(|found| found.map(|account| account.role)),
        Ok(Some(Role::Admin))
    );
    let found = stores.sessions.find(&TokenHash::of("token 1")).await;
    assert_eq!(found.map(|found| found.is_some()), Ok(true));
    assert_eq!(actions(&stores).await, before);
}

/// The last enabled administrator is not demoted, disabled or deleted; another one may be.
pub async fn last_enabled_administrator_stays(open: impl AsyncFn() -> AccountSuite) {
    let suite = open().await;
    let stores = suite.stores.clone();
    let (admin, _) = admin_and_ann(&stores).await;
    create(&stores, new_account("second", Role::Admin)).await;
    let delete = async |id: &str| {
        let entry = entry(AuditAction::AccountDeleted, 6);
        stores.accounts.delete(id, entry).await
    };
    assert!(change(&stores, "second", disabled(true)).await.is_ok());
    for refused in [role(Role::User), disabled(true)] {
        assert_eq!(
            change(&stores, &admin.id, refused).await,
            Err(AccountError::LastAdministrator)
        );
    }
    assert_eq!(
        delete(&admin.id).await,
        Err(AccountError::LastAdministrator)
    );
    assert!(change(&stores, "second", disabled(false)).await.is_ok());
    assert_eq!(delete(&admin.id).await, Ok(()));
    assert_eq!(delete(&admin.id).await, Err(AccountError::NotFound));
    assert_eq!(delete("second").await, Err(AccountError::LastAdministrator));
    assert_eq!(delete("ann").await, Ok(()));
}

/// Of two changes after the same verified password, the second is refused.
pub async fn password_change_needs_verified_hash(open: impl AsyncFn() -> AccountSuite) {
    let suite = open().await;
    let stores = suite.stores.clone();
    let (_, ann) = admin_and_ann(&stores).await;
    let new_password = |text: &str| AccountChange {
        password_hash: Some(PasswordHash::new(text)),
        if_password: ann.password_hash.clone(),
        ..AccountChange::default()
    };
    let changed = change(&stores, "ann", new_password("one")).await;
    assert_eq!(
        changed.expect("written").password_hash,
        Some(PasswordHash::new("one"))
    );
    assert_eq!(
        change(&stores, "ann", new_password("two")).await,
        Err(AccountError::PasswordChanged)
    );
}

/// Replaces the hash if it is the verified one.
pub async fn rehash_replaces_only_known_hash(open: impl AsyncFn() -> AccountSuite) {
    let suite = open().await;
    let stores = suite.stores.clone();
    let (_, ann) = admin_and_ann(&stores).await;
    let old = ann.password_hash.clone().expect("given");
    let new = PasswordHash::new("new");
    let rehash = async || stores.accounts.rehash("ann", &old, new.clone()).await;
    assert_eq!(rehash().await, Ok(true));
    assert_eq!(rehash().await, Ok(false));
    let expected = Account {
        password_hash: Some(new),
        ..ann
    };
    assert_eq!(stores.accounts.find("ann").await, Ok(Some(expected)));
}

/// The sessions go with the account.
pub async fn deleted_account_leaves_no_session(open: impl AsyncFn() -> AccountSuite) {
    let suite = open().await;
    let stores = suite.stores.clone();
    admin_and_ann(&stores).await;
    start(&stores, session(1, "ann", 1)).await;
    start(&stores, session(2, "default", 1)).await;
    let deletion = entry(AuditAction::AccountDeleted, 6).on("ann");
    assert_eq!(stores.accounts.delete("ann", deletion).await, Ok(()));
    assert_eq!(stores.accounts.find("ann").await, Ok(None));
    assert_eq!(stores.sessions.list("ann", at(2)).await, Ok(vec![]));
    let sessions = &stores.sessions;
    assert_eq!(sessions.find(&TokenHash::of("token 1")).await, Ok(None));
    let other = sessions.find(&TokenHash::of("token 2")).await;
    assert_eq!(other.map(|found| found.is_some()), Ok(true));
    assert_eq!(
        actions(&stores).await.last(),
        Some(&AuditAction::AccountDeleted)
    );
    // The e-mail is free again.
    create(&stores, new_account("ann", Role::User)).await;
}
