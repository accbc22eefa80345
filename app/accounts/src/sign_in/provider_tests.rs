//! Tests of sign-in through a provider over stores in memory.

use deerflow_domain::accounts::{AuditQuery, LoginVerdict};
use futures_util::future::join_all;
use harness::testkit::at;
use serde_json::json;

use super::super::tests::{PASSWORD, Rig, client, rig};
use super::*;
use crate::oidc::Destination;

fn rules(changes: serde_json::Value) -> OidcProviderConfig {
    serde_json::from_value(changes).unwrap()
}

fn person(subject: &str, email: &str) -> ProviderPerson {
    ProviderPerson {
        subject: subject.to_owned(),
        email: Some(email.to_owned()),
        email_verified: true,
    }
}

async fn enter(
    rig: &Rig,
    changes: serde_json::Value,
    person: &ProviderPerson,
) -> Result<Account, ProviderRefusal> {
    let (rules, client) = (rules(changes), client(1));
    let service = &rig.service;
    let entered = service.enter_from_provider("corp", &rules, person, true, &client);
    entered.await.map(|entered| entered.account)
}

async fn audited(rig: &Rig) -> Vec<(AuditAction, AuditOutcome)> {
    let query = AuditQuery {
        limit: 100,
        ..AuditQuery::default()
    };
    let mut entries = rig.stores.audit.list(&query).await.unwrap();
    entries.reverse();
    let of = |entry: &deerflow_domain::accounts::AuditEntry| {
        assert_eq!(entry.entry.address.as_deref(), Some("10.0.0.1"));
        (entry.entry.action, entry.entry.outcome)
    };
    entries.iter().map(of).collect()
}

#[tokio::test]
async fn first_sign_in_creates_an_account_and_later_ones_find_it() {
    let rig = rig();
    let ann = person("s1", "Ann@Example.org");
    let created = enter(&rig, json!({}), &ann).await.unwrap();
    assert_eq!(created.email.as_str(), "ann@example.org");
    assert_eq!(created.role, Role::User);
    assert_eq!(
        (&created.password_hash, created.needs_setup),
        (&None, false)
    );
    // The subject identifies the person, not the e-mail.
    let renamed = person("s1", "ann.b@example.org");
    let found = enter(&rig, json!({"auto_create_users": false}), &renamed).await;
    assert_eq!(found.unwrap().id, created.id);
    let success = AuditOutcome::Success;
    assert_eq!(
        audited(&rig).await,
        [
            (AuditAction::AccountCreated, success),
            (AuditAction::SignIn, success),
            (AuditAction::SignIn, success)
        ]
    );
    let login = rig.login(PASSWORD, 1).await;
    assert!(matches!(login, Err(SignInError::BadCredentials)));
}

#[tokio::test]
async fn rules_of_the_provider_exclude_people() {
    let rig = rig();
    let unverified = ProviderPerson {
        email_verified: false,
        ..person("s1", "ann@example.org")
    };
    let without_email = ProviderPerson {
        email: None,
        ..person("s1", "")
    };
    let ann = person("s1", "ann@example.org");
    for (changes, person) in [
        (json!({}), &unverified),
        (json!({}), &without_email),
        (json!({}), &person("s1", "ann")),
        (json!({"auto_create_users": false}), &ann),
        (
            json!({"allowed_email_domains": ["example.com", "org"]}),
            &ann,
        ),
        (
            json!({"allowed_email_domains": ["example.com"]}),
            &person("s1", "a@b.example.com"),
        ),
    ] {
        let refused = enter(&rig, changes.clone(), person).await;
        assert!(
            matches!(refused, Err(ProviderRefusal::NotAllowed(_))),
            "{changes}: {refused:?}"
        );
    }
    let long = person(&"s".repeat(129), "ann@example.org");
    assert_eq!(
        enter(&rig, json!({}), &long).await,
        Err(ProviderRefusal::Identity)
    );
    assert_eq!(rig.stores.accounts.census().await.unwrap().accounts, 0);
    let permitted =
        json!({"require_verified_email": false, "allowed_email_domains": ["EXAMPLE.org"]});
    assert!(enter(&rig, permitted, &unverified).await.is_ok());
}

#[tokio::test]
async fn verified_admin_email_makes_a_new_account_administrator() {
    let rig = rig();
    let rules = |verified| json!({"admin_emails": ["Root@example.org"], "require_verified_email": verified});
    let unverified = ProviderPerson {
        email_verified: false,
        ..person("s0", "root@example.org")
    };
    let user = enter(&rig, rules(false), &unverified).await.unwrap();
    assert_eq!(user.role, Role::User);
    let rig = super::super::tests::rig();
    let root = enter(&rig, rules(true), &person("s1", "root@example.org"))
        .await
        .unwrap();
    assert_eq!((root.role, &*root.id), (Role::Admin, "default"));
    let ann = enter(&rig, rules(true), &person("s2", "ann@example.org")).await;
    assert_eq!(ann.unwrap().role, Role::User);
}

#[tokio::test]
async fn account_with_the_email_is_joined_only_if_configured() {
    let rig = rig();
    let registered = rig.ann().await;
    let ann = person("s1", "ann@example.org");
    let link = json!({"link_by_verified_email": true, "require_verified_email": false});
    let unverified = ProviderPerson {
        email_verified: false,
        ..ann.clone()
    };
    for (changes, person) in [(json!({}), &ann), (link.clone(), &unverified)] {
        let refused = enter(&rig, changes, person).await;
        assert_eq!(refused, Err(ProviderRefusal::AccountExists));
    }
    let joined = enter(&rig, link.clone(), &ann).await.unwrap();
    assert_eq!(joined.id, registered.account.id);
    // The registration did not prove the e-mail: its password and its session are of no use.
    assert!(rig.login(PASSWORD, 1).await.is_err());
    assert!(rig.authenticate(&registered.token).await.is_err());
    assert!(enter(&rig, json!({}), &ann).await.is_ok());
    let other = enter(&rig, link, &person("s2", "ann@example.org")).await;
    assert_eq!(other, Err(ProviderRefusal::AccountExists));
    let linked = (AuditAction::AccountLinked, AuditOutcome::Success);
    let found = audited(&rig).await;
    assert_eq!(found.iter().filter(|entry| **entry == linked).count(), 1);
}

#[tokio::test]
async fn concurrent_callbacks_of_a_person_create_one_account() {
    let rig = rig();
    let ann = person("s1", "ann@example.org");
    let entered = join_all((0..20).map(|_| enter(&rig, json!({}), &ann))).await;
    let ids: std::collections::HashSet<_> = entered
        .into_iter()
        .map(|entered| entered.unwrap().id)
        .collect();
    assert_eq!(ids.len(), 1);
    assert_eq!(rig.stores.accounts.census().await.unwrap().accounts, 1);
}

#[tokio::test]
async fn disabled_account_does_not_come_in() {
    let rig = rig();
    let ann = person("s1", "ann@example.org");
    let account = enter(&rig, json!({}), &ann).await.unwrap();
    let change = AccountChange {
        disabled: Some(true),
        ..AccountChange::default()
    };
    let accounts = &rig.stores.accounts;
    let changed = accounts.change(&account.id, change, SessionsAfter::EndAll, vec![], at(1));
    changed.await.unwrap();
    let refused = enter(&rig, json!({}), &ann).await;
    assert!(matches!(refused, Err(ProviderRefusal::NotAllowed(_))));
}

#[tokio::test]
async fn state_is_used_once() {
    let rig = rig();
    let destination = Destination {
        redirect_uri: "https://deer.test/callback".to_owned(),
        next: "/workspace".to_owned(),
        persistent: true,
    };
    let pending = PendingSignIn::new(destination, &OidcProviderConfig::default());
    assert_eq!(rig.service.use_state(&pending).await, Ok(true));
    assert_eq!(rig.service.use_state(&pending).await, Ok(false));
}

#[tokio::test]
async fn failed_callbacks_lock_the_address() {
    let rig = rig();
    for _ in 0..50 {
        let attempt = rig.service.begin_attempt(&client(1)).await.unwrap();
        let failed = AuditOutcome::Failure;
        let client = client(1);
        let recorded = rig.service.fail_attempt(&attempt, "corp", failed, &client);
        recorded.await.unwrap();
    }
    let refused = rig.service.begin_attempt(&client(1)).await;
    assert!(matches!(refused, Err(SignInError::Limited { .. })));
    let other = rig.service.begin_attempt(&client(2)).await.unwrap();
    rig.service.end_attempt(&other).await.unwrap();
    let key = other.0.unwrap();
    let verdict = rig.stores.limits.begin(&key, at(1)).await;
    assert_eq!(verdict, Ok(LoginVerdict::Verify));
    assert_eq!(audited(&rig).await.len(), 50);
}

#[tokio::test]
async fn failures_behind_a_local_proxy_lock_no_one_out() {
    let rig = rig();
    let local = Client {
        address: [127, 0, 0, 1].into(),
        agent: None,
    };
    for _ in 0..60 {
        let attempt = rig.service.begin_attempt(&local).await.unwrap();
        let failed = AuditOutcome::Failure;
        let recorded = rig.service.fail_attempt(&attempt, "corp", failed, &local);
        recorded.await.unwrap();
    }
    let query = AuditQuery {
        limit: 100,
        ..AuditQuery::default()
    };
    assert_eq!(rig.stores.audit.list(&query).await.unwrap().len(), 60);
}
