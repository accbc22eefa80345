//! Tests of the creation, list and revocation of API keys.

use std::sync::Arc;

use deerflow_domain::accounts::InMemoryAccounts;
use deerflow_domain::api_keys::{InMemoryApiKeyStore, find_valid_key};
use deerflow_domain::testkit::accounts::account;

use super::*;
use crate::cli::FileArgs;

fn now() -> DateTime<Utc> {
    DateTime::from_timestamp(1_800_000_000, 0).unwrap()
}

fn stores() -> KeyStores {
    let accounts = Arc::new(InMemoryAccounts::default());
    KeyStores {
        keys: Arc::new(InMemoryApiKeyStore::with_accounts(accounts.clone())),
        accounts: accounts.stores(),
    }
}

async fn run_command(store: &KeyStores, command: KeysCommand) -> anyhow::Result<String> {
    let mut out = Vec::new();
    run(&command, store, now(), &mut out).await?;
    Ok(String::from_utf8(out)?)
}

fn create(user: &str, expires: Option<&str>) -> KeysCommand {
    let (name, expires) = (Some("ci".to_owned()), expires.map(str::to_owned));
    KeysCommand::Create {
        user: user.to_owned(),
        name,
        expires,
        admin: false,
        file: FileArgs::default(),
    }
}

#[tokio::test]
async fn key_is_admin_only_if_requested() {
    let store = stores();
    let mut command = create("ann", None);
    run_command(&store, command.clone()).await.unwrap();
    if let KeysCommand::Create { admin, .. } = &mut command {
        *admin = true;
    }
    assert!(
        run_command(&store, command)
            .await
            .unwrap()
            .contains("of user \"ann\", admin, created")
    );
    let listed = run_command(
        &store,
        KeysCommand::List {
            user: None,
            file: FileArgs::default(),
        },
    )
    .await
    .unwrap();
    assert_eq!(
        (listed.lines().count(), listed.matches(", admin").count()),
        (2, 1),
        "{listed}"
    );
}

#[tokio::test]
async fn key_is_shown_once_listed_and_revoked() {
    let store = stores();
    let printed = run_command(&store, create("ann", Some("90d")))
        .await
        .unwrap();
    let key = printed.lines().next().unwrap().to_owned();
    let found = find_valid_key(&store.keys, &key, now())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        (found.user_id.as_str(), found.expires_at),
        ("ann", Some(now() + TimeDelta::days(90)))
    );
    let list = |user: Option<&str>| KeysCommand::List {
        user: user.map(str::to_owned),
        file: FileArgs::default(),
    };
    let listed = run_command(&store, list(None)).await.unwrap();
    assert!(
        listed.contains(&found.key_id) && listed.contains("\"ci\"") && !listed.contains(&key),
        "{listed}"
    );
    assert_eq!(run_command(&store, list(Some("bob"))).await.unwrap(), "");
    let revoke = |key_id: &str| KeysCommand::Revoke {
        key_id: key_id.to_owned(),
        file: FileArgs::default(),
    };
    run_command(&store, revoke(&found.key_id)).await.unwrap();
    assert!(run_command(&store, revoke("nope")).await.is_err());
    assert_eq!(find_valid_key(&store.keys, &key, now()).await, Ok(None));
}

#[tokio::test]
async fn users_and_times_are_checked() {
    let store = stores();
    for user in ["", "a/b", "..", "a b", &"x".repeat(65)] {
        assert!(
            run_command(&store, create(user, None)).await.is_err(),
            "{user}"
        );
    }
    for text in ["", "-1d", "0h", "1999-01-01", "soon", "99999999999999999d"] {
        assert!(parse_expiry(text, now()).is_err(), "{text}");
    }
    assert_eq!(
        parse_expiry("12h", now()).unwrap(),
        now() + TimeDelta::hours(12)
    );
    assert_eq!(
        iso(parse_expiry("2030-01-31", now()).unwrap()),
        "2030-01-31T00:00:00.000000+00:00"
    );
}

#[tokio::test]
async fn key_belongs_to_account_of_email() {
    let store = stores();
    let entry = NewAuditEntry::new(AuditAction::AccountImported, now());
    let ann = account("u1", "ann@example.org");
    store
        .accounts
        .accounts
        .import(vec![ann], entry)
        .await
        .unwrap();
    let printed = run_command(&store, create("Ann@example.org", None)).await;
    assert!(printed.unwrap().contains("of user \"u1\""));
    let list = KeysCommand::List {
        user: Some("ann@example.org".to_owned()),
        file: FileArgs::default(),
    };
    assert_eq!(run_command(&store, list).await.unwrap().lines().count(), 1);
    let unknown = run_command(&store, create("bob@example.org", None)).await;
    assert!(unknown.unwrap_err().to_string().contains("no account"));
    let mut admin = create("u1", None);
    if let KeysCommand::Create { admin, .. } = &mut admin {
        *admin = true;
    }
    let refused = run_command(&store, admin).await.unwrap_err();
    assert!(
        refused.to_string().contains("no administrator"),
        "{refused}"
    );
}
