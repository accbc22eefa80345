//! Requirements of the API keys of accounts.

use deerflow_runtime::testkit::at;

use super::{AccountSuite, actions, admin_and_ann, entry};
use crate::accounts::{AccountChange, AuditAction, Role, SessionsAfter};
use crate::api_keys::{ApiKey, KeyCreation, KeyHash};

fn key(n: i64, user: &str) -> ApiKey {
    ApiKey {
        key_id: format!("{n:016}"),
        user_id: user.to_owned(),
        name: None,
        is_admin: false,
        created_at: at(n),
        expires_at: None,
        revoked_at: None,
    }
}

async fn create(suite: &AccountSuite, key: ApiKey) -> KeyCreation {
    let (hash, entry) = (KeyHash("h".to_owned()), entry(AuditAction::KeyCreated, 1));
    let created = suite.keys.create_own(key, hash, 3, entry).await;
    created.expect("written")
}

/// Stores a key on behalf of an operator.
async fn store(suite: &AccountSuite, key: ApiKey) {
    let (hash, entry) = (KeyHash("h".to_owned()), entry(AuditAction::KeyCreated, 1));
    assert_eq!(suite.keys.create(key, hash, entry).await, Ok(()));
}

async fn is_valid(suite: &AccountSuite, n: i64) -> bool {
    let found = suite.keys.find(&format!("{n:016}")).await.expect("read");
    found.is_some_and(|(key, _)| key.is_valid(at(50)))
}

/// Revoked and expired keys do not count, and other users' neither.
pub async fn keys_of_a_user_are_limited(open: impl AsyncFn() -> AccountSuite) {
    let suite = open().await;
    admin_and_ann(&suite.stores).await;
    assert_eq!(create(&suite, key(1, "bob")).await, KeyCreation::NoAccount);
    let expiring = ApiKey {
        expires_at: Some(at(10)),
        ..key(3, "ann")
    };
    for key in [key(1, "ann"), key(2, "ann"), expiring] {
        assert_eq!(create(&suite, key).await, KeyCreation::Created);
    }
    assert_eq!(create(&suite, key(4, "ann")).await, KeyCreation::TooMany);
    assert_eq!(
        create(&suite, key(5, "default")).await,
        KeyCreation::Created
    );
    assert_eq!(create(&suite, key(10, "ann")).await, KeyCreation::Created);
    assert_eq!(create(&suite, key(11, "ann")).await, KeyCreation::TooMany);
    assert_eq!(
        suite
            .keys
            .revoke(&key(1, "ann").key_id, entry(AuditAction::KeyRevoked, 11))
            .await,
        Ok(true)
    );
    assert_eq!(create(&suite, key(12, "ann")).await, KeyCreation::Created);
    let created = actions(&suite.stores).await;
    let created = created
        .iter()
        .filter(|action| **action == AuditAction::KeyCreated);
    assert_eq!(created.count(), 6);
}

/// Keys of a disabled account are valid again when it is enabled; those of a deleted one never.
pub async fn key_of_disabled_or_deleted_account_is_not_found(open: impl AsyncFn() -> AccountSuite) {
    let suite = open().await;
    admin_and_ann(&suite.stores).await;
    create(&suite, key(1, "ann")).await;
    store(&suite, key(2, "program")).await;
    for disabled in [true, false] {
        let change = AccountChange {
            disabled: Some(disabled),
            ..AccountChange::default()
        };
        let changed =
            suite
                .stores
                .accounts
                .change("ann", change, SessionsAfter::EndAll, vec![], at(5));
        assert!(changed.await.is_ok());
        assert_eq!(is_valid(&suite, 1).await, !disabled);
        assert!(is_valid(&suite, 2).await);
    }
    let deletion = entry(AuditAction::AccountDeleted, 6);
    assert_eq!(suite.stores.accounts.delete("ann", deletion).await, Ok(()));
    assert!(!is_valid(&suite, 1).await);
    assert_eq!(create(&suite, key(3, "ann")).await, KeyCreation::NoAccount);
    assert!(is_valid(&suite, 2).await);
}

/// A user revokes own keys only, and each only once.
pub async fn own_keys_are_revoked_by_owner_only(open: impl AsyncFn() -> AccountSuite) {
    let suite = open().await;
    admin_and_ann(&suite.stores).await;
    for n in 1..=3 {
        create(&suite, key(n, "ann")).await;
    }
    create(&suite, key(4, "default")).await;
    let revoke = async |user: &str, n: i64| {
        let entry = entry(AuditAction::KeyRevoked, 7);
        let revoked = suite
            .keys
            .revoke_own(user, &format!("{n:016}"), entry)
            .await;
        revoked.expect("written")
    };
    assert!(!revoke("default", 1).await);
    assert!(is_valid(&suite, 1).await);
    assert!(revoke("ann", 1).await);
    assert!(!revoke("ann", 1).await);
    assert!(!is_valid(&suite, 1).await);
    assert_eq!(suite.keys.revoke_all("ann", at(8)).await, Ok(2));
    assert_eq!(suite.keys.revoke_all("ann", at(9)).await, Ok(0));
    assert!(is_valid(&suite, 4).await && !is_valid(&suite, 2).await);
    let revocations = actions(&suite.stores).await;
    let revocations = revocations
        .iter()
        .filter(|action| **action == AuditAction::KeyRevoked);
    assert_eq!(revocations.count(), 1);
}

/// Password and keys are lost; keys of others and later keys stay valid.
pub async fn dropped_credentials_leave_no_password_and_no_key(
    open: impl AsyncFn() -> AccountSuite,
) {
    let suite = open().await;
    admin_and_ann(&suite.stores).await;
    create(&suite, key(1, "ann")).await;
    create(&suite, key(2, "default")).await;
    let change = AccountChange {
        drops_credentials: true,
        ..AccountChange::default()
    };
    let accounts = &suite.stores.accounts;
    let changed = accounts.change("ann", change, SessionsAfter::EndAll, vec![], at(5));
    let changed = changed.await.expect("written");
    assert_eq!(changed.password_hash, None);
    assert_eq!(accounts.find("ann").await, Ok(Some(changed)));
    assert!(!is_valid(&suite, 1).await);
    assert!(is_valid(&suite, 2).await);
    assert_eq!(create(&suite, key(6, "ann")).await, KeyCreation::Created);
    assert!(is_valid(&suite, 6).await);
}

/// A key has rights of an administrator only while its account is one, or if there is no account.
pub async fn admin_key_of_demoted_account_has_no_admin_right(open: impl AsyncFn() -> AccountSuite) {
    let suite = open().await;
    admin_and_ann(&suite.stores).await;
    for (n, user) in [(1, "ann"), (2, "program"), (3, "default")] {
        let key = ApiKey {
            is_admin: true,
            ..key(n, user)
        };
        store(&suite, key).await;
    }
    let is_admin = async |n: i64| {
        let found = suite.keys.find(&format!("{n:016}")).await.expect("read");
        found.expect("valid").0.is_admin
    };
    assert!(!is_admin(1).await);
    assert!(is_admin(2).await && is_admin(3).await);
    let promotion = AccountChange {
        role: Some(Role::Admin),
        ..AccountChange::default()
    };
    let accounts = &suite.stores.accounts;
    let promoted = accounts.change("ann", promotion, SessionsAfter::Unchanged, vec![], at(5));
    assert!(promoted.await.is_ok());
    assert!(is_admin(1).await);
}

/// Keys that an operator stores or revokes are recorded, in the transaction of the change.
pub async fn keys_of_operators_are_recorded(open: impl AsyncFn() -> AccountSuite) {
    let suite = open().await;
    store(&suite, key(1, "ann")).await;
    let revoke = async |id: &str| {
        let entry = entry(AuditAction::KeyRevoked, 2);
        suite.keys.revoke(id, entry).await
    };
    assert_eq!(revoke("absent").await, Ok(false));
    assert_eq!(revoke(&key(1, "ann").key_id).await, Ok(true));
    assert_eq!(
        actions(&suite.stores).await,
        [AuditAction::KeyCreated, AuditAction::KeyRevoked]
    );
}
