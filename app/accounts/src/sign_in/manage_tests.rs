//! Tests of the management of accounts.

use deerflow_domain::accounts::{AuditOutcome, AuditQuery, InvalidEmail, InvalidPassword};
use secrecy::ExposeSecret as _;

use super::super::change::PasswordChange;
use super::super::tests::{PASSWORD, Rig, client, entered, rig};
use super::*;
use crate::session_cache::TokenError;

const NEW: &str = "battery staple";

fn root() -> Operator {
    Operator {
        actor: Some("default".to_owned()),
        client: Some(client(9)),
    }
}

fn new_user(email: &str, role: Role, password: Option<&str>) -> NewUser {
    NewUser {
        email: email.to_owned(),
        role,
        password: password.map(|password| password.to_owned().into()),
    }
}

impl Rig {
    async fn create(&self, new: NewUser) -> Result<CreatedUser, SignInError> {
        self.service.create_user(&new, &root()).await
    }

    async fn set(
        &self,
        id: &str,
        role: Option<Role>,
        disabled: Option<bool>,
    ) -> Result<Account, SignInError> {
        let change = UserChange { role, disabled };
        self.service.change_user(id, change, &root()).await
    }

    async fn entries(&self, user: &str) -> Vec<(AuditAction, Option<String>, Option<String>)> {
        let query = AuditQuery {
            user: Some(user.to_owned()),
            limit: 100,
            ..AuditQuery::default()
        };
        let entries = self.stores.audit.list(&query).await.unwrap().into_iter();
        entries
            .map(|stored| stored.entry)
            .filter(|entry| entry.outcome == AuditOutcome::Success)
            .map(|entry| (entry.action, entry.actor, entry.address))
            .collect()
    }
}

fn password_change(current: &str, new: &str, new_email: Option<&str>) -> PasswordChange {
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
) -> Result<crate::sign_in::SignedIn, SignInError> {
    rig.service
        .change_password(account, &change, &client(1))
        .await
}

#[tokio::test(start_paused = true)]
async fn reset_password_is_changed_in_setup() {
    let rig = rig();
    let ann = rig.ann().await;
    assert!(rig.authenticate(&ann.token).await.is_ok());
    let (account, password) = rig
        .service
        .reset_password(&ann.account.id, &Operator::default())
        .await
        .unwrap();
    assert!(account.needs_setup);
    assert_eq!(rig.authenticate(&ann.token).await, Err(TokenError::Unknown));
    let password = password.expose_secret().to_owned();
    assert_eq!(password.len(), 24);
    let signed_in = rig.login(&password, 1).await.unwrap();
    let kept = apply(
        &rig,
        &signed_in.account,
        password_change(&password, NEW, None),
    )
    .await
    .unwrap();
    assert!(kept.account.needs_setup);
    let email = Some("ann.new@example.org");
    let done = apply(
        &rig,
        &kept.account,
        password_change(NEW, "third password", email),
    )
    .await
    .unwrap();
    assert!(!done.account.needs_setup);
    assert_eq!(
        Ok(done.account.email),
        deerflow_domain::accounts::Email::parse("ann.new@example.org")
    );
    let absent = rig
        .service
        .reset_password("absent", &Operator::default())
        .await;
    assert_eq!(absent.unwrap_err(), SignInError::NotFound);
}

#[tokio::test(start_paused = true)]
async fn created_user_signs_in_with_given_or_generated_password() {
    let rig = rig();
    let given = new_user("Ann@example.org", Role::User, Some(PASSWORD));
    let ann = rig.create(given).await.unwrap();
    assert!(ann.generated.is_none() && !ann.account.needs_setup);
    assert!(rig.login(PASSWORD, 1).await.is_ok());
    let generated = new_user("bob@example.org", Role::Admin, None);
    let bob = rig.create(generated).await.unwrap();
    assert!(bob.account.needs_setup);
    assert_eq!(
        (&*bob.account.id, bob.account.role),
        ("default", Role::Admin)
    );
    let password = bob.generated.unwrap();
    let entered = entered("bob@example.org", password.expose_secret());
    assert!(rig.service.login(&entered, &client(1)).await.is_ok());
    let created = (
        AuditAction::AccountCreated,
        Some("default".to_owned()),
        Some("10.0.0.9".to_owned()),
    );
    assert!(rig.entries(&ann.account.id).await.contains(&created));
}

#[tokio::test(start_paused = true)]
async fn created_user_follows_rules_of_registration() {
    let rig = rig();
    let refused = async |email, password| {
        let new = new_user(email, Role::User, password);
        rig.create(new).await.map(|created| created.account.id)
    };
    assert_eq!(
        refused("ann", None).await,
        Err(InvalidEmail::Malformed.into())
    );
    assert_eq!(
        refused("ann@example.org", Some("short")).await,
        Err(InvalidPassword::TooShort.into())
    );
    assert!(refused("ann@example.org", None).await.is_ok());
    assert_eq!(
        refused("ANN@example.org", None).await,
        Err(SignInError::EmailTaken)
    );
}

#[tokio::test(start_paused = true)]
async fn disabled_user_is_signed_out_until_enabled() {
    let rig = rig();
    let ann = rig.ann().await;
    let id = &*ann.account.id;
    assert!(rig.authenticate(&ann.token).await.is_ok());
    let disabled = rig.set(id, None, Some(true)).await.unwrap();
    assert!(!disabled.is_enabled());
    assert_eq!(rig.authenticate(&ann.token).await, Err(TokenError::Unknown));
    assert_eq!(
        rig.login(PASSWORD, 1).await.unwrap_err(),
        SignInError::Disabled
    );
    let enabled = rig.set(id, None, Some(false)).await.unwrap();
    assert!(enabled.is_enabled());
    assert!(rig.login(PASSWORD, 1).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn only_real_changes_are_recorded() {
    let rig = rig();
    rig.create(new_user("root@example.org", Role::Admin, None))
        .await
        .unwrap();
    let ann = rig.ann().await.account;
    let before = rig.entries(&ann.id).await.len();
    rig.set(&ann.id, Some(Role::User), Some(false))
        .await
        .unwrap();
    assert_eq!(rig.entries(&ann.id).await.len(), before);
    rig.set(&ann.id, Some(Role::Admin), None).await.unwrap();
    assert_eq!(rig.entries(&ann.id).await[0].0, AuditAction::RoleChanged);
    assert_eq!(rig.entries(&ann.id).await.len(), before + 1);
    assert_eq!(
        rig.set("absent", None, Some(true)).await,
        Err(SignInError::NotFound)
    );
}

#[tokio::test(start_paused = true)]
async fn last_administrator_is_neither_demoted_nor_disabled() {
    let rig = rig();
    let root = rig.create(new_user("root@example.org", Role::Admin, None));
    let root = root.await.unwrap().account.id;
    for (role, disabled) in [(Some(Role::User), None), (None, Some(true))] {
        let refused = rig.set(&root, role, disabled).await;
        assert_eq!(refused, Err(SignInError::LastAdministrator));
    }
}
