//! Requirements of created and imported accounts.

use deerflow_core::actor_context::DEFAULT_USER_ID;
use deerflow_runtime::testkit::at;

use super::{AccountSuite, account, actions, create, email, entry, new_account};
use crate::accounts::{
    Account, AccountChange, AccountError, Admission, AuditAction, AuditQuery, NewAccount,
    PasswordHash, ProviderIdentity, Role, SessionsAfter,
};

/// All fields are returned unchanged, and the entry names the account.
pub async fn created_account_is_returned_unchanged(open: impl AsyncFn() -> AccountSuite) {
    let suite = open().await;
    let stores = suite.stores.clone();
    let identity = ProviderIdentity::new("p", "s ü").expect("short");
    let new = NewAccount {
        identity: Some(identity.clone()),
        needs_setup: true,
        ..new_account("ann", Role::User)
    };
    let expected = Account {
        password_hash: Some(PasswordHash::new("hash of ann")),
        identity: Some(identity.clone()),
        needs_setup: true,
        ..account("ann", "ann@example.org")
    };
    assert_eq!(create(&stores, new).await, expected);
    let accounts = &stores.accounts;
    let expected = Some(expected);
    assert_eq!(accounts.find("ann").await, Ok(expected.clone()));
    assert_eq!(
        accounts.find_by_email(&email("ANN@example.org")).await,
        Ok(expected.clone())
    );
    assert_eq!(accounts.find_by_identity(&identity).await, Ok(expected));
    assert_eq!(accounts.find("bob").await, Ok(None));
    assert_eq!(
        accounts.find_by_email(&email("bob@example.org")).await,
        Ok(None)
    );
    let other = ProviderIdentity::new("s ü", "p").expect("short");
    assert_eq!(accounts.find_by_identity(&other).await, Ok(None));
    let query = AuditQuery {
        limit: 9,
        ..AuditQuery::default()
    };
    let audit = stores.audit.list(&query).await.expect("read");
    assert_eq!(audit.len(), 1);
    assert_eq!(audit[0].entry.object.as_deref(), Some("ann"));
}

/// A second account with the e-mail or identity is refused and leaves no entry.
pub async fn email_and_identity_are_unique(open: impl AsyncFn() -> AccountSuite) {
    let suite = open().await;
    let stores = suite.stores.clone();
    let identity = ProviderIdentity::new("p", "s");
    let ann = NewAccount {
        identity: identity.clone(),
        ..new_account("ann", Role::User)
    };
    create(&stores, ann.clone()).await;
    let create = async |new| {
        stores
            .accounts
            .create(new, entry(AuditAction::AccountCreated, 1))
            .await
    };
    let same_email = NewAccount {
        id: "bob".to_owned(),
        identity: None,
        ..ann.clone()
    };
    assert_eq!(create(same_email).await, Err(AccountError::EmailTaken));
    let same_identity = NewAccount {
        identity,
        ..new_account("bob", Role::User)
    };
    assert_eq!(
        create(same_identity).await,
        Err(AccountError::IdentityTaken)
    );
    assert_eq!(actions(&stores).await, [AuditAction::AccountCreated]);
    // Any number of accounts has no identity.
    for id in ["bob", "cid"] {
        assert!(create(new_account(id, Role::User)).await.is_ok());
    }
}

/// The first administrator gets the id of the time before sign-in; later ones and users do not.
pub async fn first_administrator_is_default_user(open: impl AsyncFn() -> AccountSuite) {
    let suite = open().await;
    let stores = suite.stores.clone();
    let user = create(&stores, new_account("ann", Role::User)).await;
    assert_eq!(user.id, "ann");
    let first = NewAccount {
        admission: Admission::NoAdministrator,
        ..new_account("root", Role::Admin)
    };
    let created = create(&stores, first.clone()).await;
    assert_eq!(created.id, DEFAULT_USER_ID);
    let again = NewAccount {
        email: email("other@example.org"),
        ..first
    };
    assert_eq!(
        stores
            .accounts
            .create(again, entry(AuditAction::AccountCreated, 1))
            .await,
        Err(AccountError::AdministratorExists)
    );
    let second = create(&stores, new_account("second", Role::Admin)).await;
    assert_eq!(second.id, "second");
    let census = stores.accounts.census().await.expect("read");
    assert_eq!((census.accounts, census.administrators), (3, 2));
}

/// An account cannot become the first administrator, because that one is the default user.
pub async fn promotion_needs_administrator(open: impl AsyncFn() -> AccountSuite) {
    let suite = open().await;
    let stores = suite.stores.clone();
    create(&stores, new_account("ann", Role::User)).await;
    let promote = async || {
        let change = AccountChange {
            role: Some(Role::Admin),
            ..AccountChange::default()
        };
        let entries = vec![entry(AuditAction::RoleChanged, 2)];
        stores
            .accounts
            .change("ann", change, SessionsAfter::Unchanged, entries, at(2))
            .await
    };
    assert_eq!(promote().await, Err(AccountError::NoAdministrator));
    create(&stores, new_account("root", Role::Admin)).await;
    assert_eq!(promote().await.map(|ann| ann.role), Ok(Role::Admin));
}

/// A repeated import changes nothing; taken ids, e-mails and identities are skipped.
pub async fn import_is_repeated_without_change(open: impl AsyncFn() -> AccountSuite) {
    let suite = open().await;
    let stores = suite.stores.clone();
    create(&stores, new_account("ann", Role::User)).await;
    let imported = Account {
        role: Role::Admin,
        password_hash: Some(PasswordHash::new("$dfv2$x")),
        identity: ProviderIdentity::new("p", "s"),
        needs_setup: true,
        created_at: at(-9),
        ..account("u1", "u1@example.org")
    };
    let list = vec![
        imported.clone(),
        account("ann", "fresh@example.org"),
        account("u2", "ann@example.org"),
        Account {
            identity: ProviderIdentity::new("p", "s"),
            ..account("u3", "u3@example.org")
        },
        account("u4", "u4@example.org"),
    ];
    let import = async || {
        let entry = entry(AuditAction::AccountImported, 1);
        let outcome = stores.accounts.import(list.clone(), entry).await;
        let outcome = outcome.expect("written");
        (outcome.imported, outcome.skipped)
    };
    let ids = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect::<Vec<_>>();
    assert_eq!(
        import().await,
        (ids(&["u1", "u4"]), ids(&["ann", "u2", "u3"]))
    );
    assert_eq!(stores.accounts.find("u1").await, Ok(Some(imported)));
    let before = actions(&stores).await;
    assert_eq!(
        import().await,
        (vec![], ids(&["u1", "ann", "u2", "u3", "u4"]))
    );
    assert_eq!(actions(&stores).await, before);
    assert_eq!(before.len(), 3);
}
