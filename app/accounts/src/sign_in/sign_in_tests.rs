//! Tests of sign-in, registration and logout over stores in memory.

use chrono::TimeDelta;
use deerflow_domain::accounts::{
    AccountChange, AuditOutcome, AuditQuery, InMemoryAccounts, InvalidEmail, InvalidPassword, Role,
    SessionRefusal, SessionsAfter,
};
use deerflow_domain::testkit::accounts::account;
use futures_util::future::join_all;
use harness::clock::ManualClock;
use harness::ids::SystemIds;
use harness::testkit::at;

use super::*;
use crate::session_cache::{SessionUse, TokenError};

pub(super) const PASSWORD: &str = "correct horse";

pub(super) struct Rig {
    pub(super) stores: AccountStores,
    pub(super) clock: ManualClock,
    pub(super) service: SignIn,
}

pub(super) fn rig() -> Rig {
    let stores = Arc::new(InMemoryAccounts::default()).stores();
    let clock = ManualClock::starting_at(at(0));
    let shared: Arc<dyn Clock> = Arc::new(clock.clone());
    let parts = SignInParts {
        stores: stores.clone(),
        passwords: PasswordPool::default(),
        cache: Arc::new(SessionCache::new(stores.sessions.clone(), shared.clone())),
        clock: shared,
        ids: Arc::new(SystemIds::default()),
    };
    let service = SignIn::new(parts);
    Rig {
        stores,
        clock,
        service,
    }
}

/// Returns a client at this address of a network.
pub(super) fn client(last: u8) -> Client {
    Client {
        address: [10, 0, 0, last].into(),
        agent: Some("Firefox".to_owned()),
    }
}

pub(super) fn entered(email: &str, password: &str) -> Credentials {
    Credentials {
        email: email.to_owned(),
        password: password.to_owned().into(),
        persistent: true,
    }
}

impl Rig {
    /// Registers `ann` from address 1.
    pub(super) async fn ann(&self) -> SignedIn {
        let entered = entered("Ann@Example.org", PASSWORD);
        self.service
            .register(&entered, 0, &client(1))
            .await
            .unwrap()
    }

    pub(super) async fn login(&self, password: &str, last: u8) -> Result<SignedIn, SignInError> {
        let entered = entered("ann@example.org", password);
        self.service.login(&entered, &client(last)).await
    }

    pub(super) async fn authenticate(&self, token: &SessionToken) -> Result<String, TokenError> {
        let cache = &self.service.parts.cache;
        let found = cache
            .authenticate(token.expose(), SessionUse::Extends)
            .await?;
        Ok(found.1.id.clone())
    }

    pub(super) async fn change(&self, change: AccountChange) {
        let accounts = &self.stores.accounts;
        let ann = accounts
            .find_by_email(&account("x", "ann@example.org").email)
            .await;
        let id = ann.unwrap().unwrap().id;
        let changed = accounts.change(&id, change, SessionsAfter::Unchanged, vec![], at(0));
        changed.await.unwrap();
    }

    /// Returns recorded actions with outcome and object, the oldest first.
    async fn audit(&self) -> Vec<(AuditAction, AuditOutcome, Option<String>)> {
        let query = AuditQuery {
            limit: 1_000,
            ..AuditQuery::default()
        };
        let mut entries = self.stores.audit.list(&query).await.unwrap();
        entries.reverse();
        let facts = entries.into_iter().map(|stored| stored.entry);
        facts
            .map(|entry| (entry.action, entry.outcome, entry.object))
            .collect()
    }
}

#[tokio::test(start_paused = true)]
async fn registered_person_is_signed_in_and_logs_in_again() {
    let rig = rig();
    let registered = rig.ann().await;
    assert_eq!(registered.account.email.as_str(), "ann@example.org");
    assert_eq!(registered.account.role, Role::User);
    let id = Ok(registered.account.id.clone());
    assert_eq!(rig.authenticate(&registered.token).await, id);
    let again = rig.login(PASSWORD, 1).await.unwrap();
    assert_ne!(again.token.expose(), registered.token.expose());
    assert_eq!(rig.authenticate(&again.token).await, id);
    assert!(again.session.persistent);
    assert_eq!(again.session.address.as_deref(), Some("10.0.0.1"));
    assert_eq!(again.account.last_login_at, Some(at(0)));
    let object = Some(registered.account.id);
    let expected = [
        AuditAction::AccountCreated,
        AuditAction::SignIn,
        AuditAction::SignIn,
    ]
    .map(|action| (action, AuditOutcome::Success, object.clone()));
    assert_eq!(rig.audit().await, expected);
}

#[tokio::test(start_paused = true)]
async fn registration_checks_email_password_and_limit() {
    let rig = rig();
    rig.ann().await;
    let register = async |email: &str, password: &str, per_hour| {
        let entered = entered(email, password);
        let registered = rig.service.register(&entered, per_hour, &client(2)).await;
        registered.map(drop)
    };
    assert_eq!(
        register("ann", PASSWORD, 0).await,
        Err(InvalidEmail::Malformed.into())
    );
    assert_eq!(
        register("bob@example.org", "password", 0).await,
        Err(InvalidPassword::Common.into())
    );
    let taken = register("ANN@example.org", PASSWORD, 2).await;
    assert_eq!(taken, Err(SignInError::EmailTaken));
    assert_eq!(register("bob@example.org", PASSWORD, 2).await, Ok(()));
    let hour = std::time::Duration::from_secs(3_600);
    let limited = Err(SignInError::Limited { retry_after: hour });
    assert_eq!(register("cid@example.org", PASSWORD, 2).await, limited);
    assert_eq!(register("cid@example.org", PASSWORD, 0).await, Ok(()));
}

#[tokio::test(start_paused = true)]
async fn unknown_email_missing_and_wrong_password_are_alike() {
    let rig = rig();
    let ann = rig.ann().await.account;
    let sso = account("sso", "sso@example.org");
    let entry = NewAuditEntry::new(AuditAction::AccountImported, at(0));
    rig.stores.accounts.import(vec![sso], entry).await.unwrap();
    let before = rig.audit().await.len();
    for email in [
        "ann@example.org",
        "sso@example.org",
        "eve@example.org",
        "my secret",
        "",
    ] {
        let entered = entered(email, "wrong horse");
        let refused = rig.service.login(&entered, &client(1)).await;
        assert_eq!(refused.unwrap_err(), SignInError::BadCredentials, "{email}");
    }
    let failure = |object: Option<&str>| {
        let object = object.map(str::to_owned);
        (AuditAction::SignIn, AuditOutcome::Failure, object)
    };
    let expected = [Some(&*ann.id), Some("sso"), None, None, None].map(failure);
    assert_eq!(rig.audit().await[before..], expected);
}

#[tokio::test(start_paused = true)]
async fn sixth_attempt_of_stranger_is_refused_for_30_seconds() {
    let rig = rig();
    rig.ann().await;
    for _ in 0..5 {
        let refused = rig.login("wrong horse", 2).await;
        assert_eq!(refused.unwrap_err(), SignInError::BadCredentials);
    }
    let retry_after = std::time::Duration::from_secs(30);
    let limited = SignInError::Limited { retry_after };
    assert_eq!(rig.login(PASSWORD, 2).await.unwrap_err(), limited);
    assert!(rig.login(PASSWORD, 3).await.is_ok());
    rig.clock.advance(TimeDelta::seconds(30));
    assert!(rig.login(PASSWORD, 2).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn right_password_from_known_address_is_never_refused() {
    let rig = rig();
    rig.ann().await;
    for _ in 0..6 {
        let refused = rig.login("wrong horse", 1).await;
        assert_eq!(refused.unwrap_err(), SignInError::BadCredentials);
    }
    assert!(rig.login(PASSWORD, 1).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn concurrent_guesses_do_not_exceed_limit() {
    let rig = rig();
    rig.ann().await;
    let results = join_all((0..12).map(|_| rig.login("wrong horse", 2))).await;
    let (mut verified, mut limited) = (0, 0);
    for result in results {
        match result.unwrap_err() {
            SignInError::BadCredentials => verified += 1,
            SignInError::Limited { .. } => limited += 1,
            other => panic!("{other}"),
        }
    }
    assert_eq!((verified, limited), (5, 7));
}

#[tokio::test(start_paused = true)]
async fn old_hash_is_replaced_after_login() {
    let rig = rig();
    let parts = bcrypt::hash_with_salt(PASSWORD, 4, [7; 16]).unwrap();
    let hash = parts.format_for_version(bcrypt::Version::TwoB);
    let old = PasswordHash::new(format!("$dfv1${hash}"));
    let imported = Account {
        password_hash: Some(old),
        ..account("u1", "ann@example.org")
    };
    let entry = NewAuditEntry::new(AuditAction::AccountImported, at(0));
    rig.stores
        .accounts
        .import(vec![imported], entry)
        .await
        .unwrap();
    assert!(rig.login("wrong horse", 1).await.is_err());
    let stored = async || {
        let found = rig.stores.accounts.find("u1").await.unwrap().unwrap();
        found.password_hash.unwrap()
    };
    assert!(stored().await.expose().starts_with("$dfv1$"));
    let signed_in = rig.login(PASSWORD, 1).await.unwrap();
    assert_eq!(signed_in.account.password_hash, Some(stored().await));
    let replaced = stored().await;
    assert!(replaced.expose().starts_with("$argon2id$"));
    assert!(rig.login(PASSWORD, 1).await.is_ok());
    assert_eq!(stored().await, replaced);
}

#[tokio::test(start_paused = true)]
async fn disabled_account_is_named_to_its_owner_only() {
    let rig = rig();
    let ann = rig.ann().await;
    rig.change(AccountChange {
        disabled: Some(true),
        ..AccountChange::default()
    })
    .await;
    let wrong = rig.login("wrong horse", 1).await;
    assert_eq!(wrong.unwrap_err(), SignInError::BadCredentials);
    let right = rig.login(PASSWORD, 1).await;
    assert_eq!(right.unwrap_err(), SignInError::Disabled);
    assert_eq!(
        rig.authenticate(&ann.token).await,
        Err(TokenError::Refused(SessionRefusal::AccountDisabled))
    );
}

#[tokio::test(start_paused = true)]
async fn concurrent_initializations_make_one_administrator() {
    let rig = rig();
    rig.ann().await;
    let initialize = async |n: usize| {
        let entered = entered(&format!("admin{n}@example.org"), PASSWORD);
        rig.service.initialize(&entered, &client(9)).await
    };
    let results = join_all((0..50).map(initialize)).await;
    let mut admins = Vec::new();
    for result in results {
        match result {
            Ok(signed_in) => admins.push(signed_in),
            Err(error) => assert_eq!(error, SignInError::AdministratorExists),
        }
    }
    assert_eq!(admins.len(), 1);
    assert_eq!(admins[0].account.id, "default");
    assert_eq!(
        rig.authenticate(&admins[0].token).await.as_deref(),
        Ok("default")
    );
}

#[tokio::test(start_paused = true)]
async fn setup_with_email_of_user_is_refused() {
    let rig = rig();
    rig.ann().await;
    let entered = entered("ann@example.org", PASSWORD);
    let refused = rig.service.initialize(&entered, &client(1)).await;
    assert_eq!(refused.unwrap_err(), SignInError::EmailTaken);
}

#[tokio::test(start_paused = true)]
async fn logout_ends_session_of_token_at_once() {
    let rig = rig();
    let one = rig.ann().await;
    let other = rig.login(PASSWORD, 1).await.unwrap();
    assert!(rig.authenticate(&one.token).await.is_ok());
    let logout = async || rig.service.logout(one.token.expose(), &client(1)).await;
    assert_eq!(logout().await, Ok(true));
    assert_eq!(rig.authenticate(&one.token).await, Err(TokenError::Unknown));
    assert_eq!(logout().await, Ok(false));
    assert!(rig.authenticate(&other.token).await.is_ok());
    let last = rig.audit().await.pop().unwrap();
    let object = Some(one.session.id.to_string());
    assert_eq!(
        last,
        (AuditAction::SessionEnded, AuditOutcome::Success, object)
    );
}
