//! Tests of changed and reset passwords.

use deerflow_domain::accounts::InvalidPassword;
use deerflow_domain::testkit::accounts::account;

use super::super::tests::{PASSWORD, Rig, client, entered, rig};
use super::*;
use crate::session_cache::TokenError;

const NEW: &str = "battery staple";

fn change(current: &str, new: &str, new_email: Option<&str>) -> PasswordChange {
    PasswordChange {
        current: current.to_owned().into(),
        new: new.to_owned().into(),
        new_email: new_email.map(str::to_owned),
        persistent: false,
    }
}

async fn apply(
    rig: &Rig,
    account: &Account,
    change: PasswordChange,
) -> Result<SignedIn, SignInError> {
    rig.service
        .change_password(account, &change, &client(1))
        .await
}

#[tokio::test(start_paused = true)]
async fn change_ends_all_sessions_and_starts_a_new_one() {
    let rig = rig();
    let one = rig.ann().await;
    let other = rig.login(PASSWORD, 1).await.unwrap();
    for token in [&one.token, &other.token] {
        assert!(rig.authenticate(token).await.is_ok());
    }
    let changed = apply(&rig, &one.account, change(PASSWORD, NEW, None))
        .await
        .unwrap();
    for token in [&one.token, &other.token] {
        assert_eq!(rig.authenticate(token).await, Err(TokenError::Unknown));
    }
    assert!(rig.authenticate(&changed.token).await.is_ok());
    assert!(!changed.session.persistent);
    let old = rig.login(PASSWORD, 1).await;
    assert_eq!(old.unwrap_err(), SignInError::BadCredentials);
    assert!(rig.login(NEW, 1).await.is_ok());
    // The caller verified the first password before the change.
    let stale = apply(&rig, &one.account, change(PASSWORD, "third password", None)).await;
    assert_eq!(stale.unwrap_err(), SignInError::WrongPassword);
}

#[tokio::test(start_paused = true)]
async fn wrong_current_password_counts_as_failure() {
    let rig = rig();
    let ann = rig.ann().await.account;
    let stranger = client(7);
    for _ in 0..5 {
        let change = change("wrong horse", NEW, None);
        let refused = rig.service.change_password(&ann, &change, &stranger).await;
        assert_eq!(refused.unwrap_err(), SignInError::WrongPassword);
    }
    let right = change(PASSWORD, NEW, None);
    let refused = rig.service.change_password(&ann, &right, &stranger).await;
    assert!(matches!(refused, Err(SignInError::Limited { .. })));
    assert!(matches!(
        rig.login(PASSWORD, 7).await,
        Err(SignInError::Limited { .. })
    ));
    assert!(apply(&rig, &ann, change(PASSWORD, NEW, None)).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn rules_of_new_password_and_email_hold() {
    let rig = rig();
    let ann = rig.ann().await.account;
    let bob = entered("bob@example.org", PASSWORD);
    rig.service.register(&bob, 0, &client(1)).await.unwrap();
    let refused = async |change| apply(&rig, &ann, change).await.map(drop);
    assert_eq!(
        refused(change(PASSWORD, "short", None)).await,
        Err(InvalidPassword::TooShort.into())
    );
    assert_eq!(
        refused(change(PASSWORD, "long.name", Some("Long.Name@example.org"))).await,
        Err(InvalidPassword::IsEmail.into())
    );
    assert_eq!(
        refused(change(PASSWORD, NEW, Some("BOB@example.org"))).await,
        Err(SignInError::EmailTaken)
    );
    let sso = account("sso", "sso@example.org");
    let without = apply(&rig, &sso, change(PASSWORD, NEW, None)).await;
    assert_eq!(without.unwrap_err(), SignInError::NoPassword);
}

#[tokio::test(start_paused = true)]
async fn concurrent_changes_of_one_password_take_effect_once() {
    let rig = rig();
    let ann = rig.ann().await.account;
    let changes = ["first new password", "second new password"]
        .map(|new| apply(&rig, &ann, change(PASSWORD, new, None)));
    let results = futures_util::future::join_all(changes).await;
    let refused: Vec<_> = results.into_iter().filter_map(Result::err).collect();
    assert_eq!(refused, [SignInError::WrongPassword]);
}
