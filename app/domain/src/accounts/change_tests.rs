//! Tests of changes of accounts.

use deerflow_runtime::testkit::at;

use super::*;
use crate::testkit::accounts::account;

#[test]
fn change_touches_named_fields_only() {
    let ann = account("ann", "ann@example.org");
    let change = AccountChange {
        role: Some(Role::Admin),
        disabled: Some(true),
        ..AccountChange::default()
    };
    let changed = change.apply(&ann, at(9)).unwrap();
    let expected = Account {
        role: Role::Admin,
        disabled_at: Some(at(9)),
        updated_at: at(9),
        ..ann
    };
    assert_eq!(changed, expected);
    assert_eq!(
        change.apply(&changed, at(10)).unwrap().disabled_at,
        Some(at(9))
    );
}

#[test]
fn second_identity_is_refused_and_credentials_are_dropped() {
    let mut ann = account("ann", "ann@example.org");
    ann.password_hash = Some(PasswordHash::new("old"));
    let link = |subject: &str| AccountChange {
        identity: ProviderIdentity::new("corp", subject),
        drops_credentials: true,
        ..AccountChange::default()
    };
    let linked = link("1").apply(&ann, at(9)).unwrap();
    assert_eq!(linked.identity, ProviderIdentity::new("corp", "1"));
    assert_eq!(linked.password_hash, None);
    assert!(link("1").apply(&linked, at(9)).is_ok());
    assert_eq!(
        link("2").apply(&linked, at(9)),
        Err(AccountError::IdentityTaken)
    );
}

#[test]
fn change_after_other_password_is_refused() {
    let mut ann = account("ann", "ann@example.org");
    ann.password_hash = Some(PasswordHash::new("new"));
    let change = AccountChange {
        if_password: Some(PasswordHash::new("old")),
        ..AccountChange::default()
    };
    assert_eq!(
        change.apply(&ann, at(9)),
        Err(AccountError::PasswordChanged)
    );
}

#[test]
fn last_enabled_administrator_cannot_stop_being_one() {
    let mut admin = account("ann", "ann@example.org");
    admin.role = Role::Admin;
    let disabled = Account {
        disabled_at: Some(at(1)),
        ..admin.clone()
    };
    let user = account("ann", "ann@example.org");
    for after in [None, Some(&disabled), Some(&user)] {
        let check = |others| check_administrators(&admin, after, others, 1 + others);
        assert_eq!(check(0), Err(AccountError::LastAdministrator));
        assert_eq!(check(1), Ok(()));
    }
    assert_eq!(check_administrators(&admin, Some(&admin), 0, 1), Ok(()));
    assert_eq!(check_administrators(&disabled, None, 0, 1), Ok(()));
    assert_eq!(
        check_administrators(&user, Some(&admin), 0, 0),
        Err(AccountError::NoAdministrator)
    );
    assert_eq!(check_administrators(&user, Some(&admin), 0, 1), Ok(()));
}
