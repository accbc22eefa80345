//! Tests of the plan of an import.

use super::*;

fn user(id: &str, email: &str, created_at: &str) -> ForeignUser {
    ForeignUser {
        id: id.to_owned(),
        email: email.to_owned(),
        password_hash: Some("$dfv2$x".to_owned()),
        system_role: "user".to_owned(),
        created_at: created_at.to_owned(),
        oauth_provider: None,
        oauth_id: None,
        needs_setup: false,
    }
}

#[test]
fn user_is_imported_with_id_hash_and_identity() {
    let users = vec![ForeignUser {
        system_role: "admin".to_owned(),
        oauth_provider: Some("corp".to_owned()),
        oauth_id: Some("s1".to_owned()),
        needs_setup: true,
        ..user("u1", "Ann@Example.org", "2026-01-31 12:00:00.250000")
    }];
    let plan = plan_import(users.clone());
    assert_eq!(plan_import(users), plan);
    assert!(plan.rejected.is_empty());
    let [account] = &plan.accounts[..] else {
        panic!("{plan:?}")
    };
    assert_eq!(
        (account.id.as_str(), account.email.as_str()),
        ("u1", "ann@example.org")
    );
    assert_eq!(account.role, Role::Admin);
    assert_eq!(account.password_hash, Some(PasswordHash::new("$dfv2$x")));
    assert_eq!(account.identity, ProviderIdentity::new("corp", "s1"));
    assert!(account.needs_setup && account.is_enabled());
    assert_eq!(account.created_at.timestamp_millis(), 1_769_860_800_250);
}

#[test]
fn oldest_of_users_with_same_email_is_imported() {
    let plan = plan_import(vec![
        user("young", "ANN@example.org", "2026-01-02 00:00:00"),
        user("old", "Ann@example.org", "2026-01-01T23:59:59+00:00"),
        user("bob", "bob@example.org", "2026-01-03 00:00:00.000000"),
    ]);
    let ids: Vec<&str> = plan
        .accounts
        .iter()
        .map(|account| account.id.as_str())
        .collect();
    assert_eq!(ids, ["old", "bob"]);
    assert_eq!(plan.rejected.len(), 1);
    assert_eq!(plan.rejected[0].id, "young");
}

#[test]
fn unusable_user_is_rejected_with_reason() {
    let good = user("u1", "ann@example.org", "2026-01-01 00:00:00");
    let with = |change: fn(&mut ForeignUser)| {
        let mut user = good.clone();
        change(&mut user);
        plan_import(vec![user])
            .rejected
            .first()
            .map(|user| user.reason)
    };
    assert_eq!(with(|_| {}), None);
    assert!(with(|user| user.id = "../u".to_owned()).is_some());
    assert!(with(|user| user.id = "default".to_owned()).is_some());
    assert!(with(|user| user.email = "ann".to_owned()).is_some());
    assert!(with(|user| user.system_role = "root".to_owned()).is_some());
    assert!(with(|user| user.created_at = "yesterday".to_owned()).is_some());
    let long_id = |user: &mut ForeignUser| {
        user.oauth_provider = Some("corp".to_owned());
        user.oauth_id = Some("s".repeat(129));
    };
    assert!(with(long_id).is_some());
}
