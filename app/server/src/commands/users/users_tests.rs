//! Tests of the commands about accounts, over stores in memory.

use std::sync::Arc;

use async_trait::async_trait;
use deerflow_accounts::password::PasswordPool;
use deerflow_accounts::{SessionCache, SignInParts};
use deerflow_domain::accounts::{AuditAction, InMemoryAccounts, NewAuditEntry};
use harness::clock::{Clock, SystemClock};
use harness::ids::SystemIds;
use harness::quota::Quota;
use harness::runtime::runs::store::StoreError;

use super::*;
use crate::cli::{AuditArgs, FileArgs};

struct Rig {
    service: SignIn,
    stores: AccountStores,
    deletion: AccountDeletion,
    quotas: UserQuotas,
    home: tempfile::TempDir,
}

/// Amounts of one user.
#[derive(Debug)]
struct OneUser;

#[async_trait]
impl QuotaUsageStore for OneUser {
    async fn amount(&self, user: &str, quota: Quota) -> Result<u64, StoreError> {
        Ok(match quota {
            Quota::Threads if user == "ann" => 7,
            Quota::StoredBytes => 3 << 19,
            _ => 0,
        })
    }

    async fn users(&self, _: u64) -> Result<Vec<String>, StoreError> {
        Ok(vec!["ann".to_owned()])
    }
}

fn rig() -> Rig {
    let stores = Arc::new(InMemoryAccounts::default()).stores();
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let cache = Arc::new(SessionCache::new(stores.sessions.clone(), clock.clone()));
    let service = SignIn::new(SignInParts {
        stores: stores.clone(),
        passwords: PasswordPool::default(),
        cache: cache.clone(),
        clock: clock.clone(),
        ids: Arc::new(SystemIds::default()),
    });
    Rig {
        service,
        deletion: AccountDeletion::new(stores.clone(), cache, Vec::new(), clock),
        stores,
        quotas: UserQuotas {
            threads: Some(9),
            stored_bytes: Some(2 << 20),
            ..UserQuotas::default()
        },
        home: tempfile::tempdir().unwrap(),
    }
}

impl Rig {
    fn users(&self) -> Users<'_> {
        Users {
            service: &self.service,
            stores: &self.stores,
            deletion: Some(&self.deletion),
            usage: &OneUser,
            quotas: self.quotas,
            home: self.home.path(),
            now: SystemClock.now(),
        }
    }

    async fn run(&self, command: UsersCommand, input: &str) -> anyhow::Result<String> {
        let mut out = Vec::new();
        let mut input = input.as_bytes();
        self.users().run(&command, &mut input, &mut out).await?;
        Ok(String::from_utf8(out)?)
    }

    async fn create(&self, email: &str, admin: bool, password: &str) -> anyhow::Result<String> {
        let command = UsersCommand::Create {
            email: email.to_owned(),
            admin,
            password_stdin: !password.is_empty(),
            json: false,
            file: FileArgs::default(),
        };
        self.run(command, password).await
    }

    async fn find(&self, user: &str) -> anyhow::Result<Account> {
        find_account(&*self.stores.accounts, user).await
    }

    fn credentials(&self) -> String {
        let file = self.home.path().join("admin_initial_credentials.txt");
        std::fs::read_to_string(file).unwrap()
    }
}

fn args(user: &str) -> UserArgs {
    UserArgs {
        user: user.to_owned(),
        json: false,
        file: FileArgs::default(),
    }
}

fn delete(user: &str, yes: bool) -> UsersCommand {
    UsersCommand::Delete {
        user: user.to_owned(),
        yes,
        json: true,
        file: FileArgs::default(),
    }
}

#[tokio::test]
async fn created_user_gets_given_or_stored_password() {
    let rig = rig();
    let printed = rig.create("root@example.org", true, "").await.unwrap();
    let stored = rig.credentials();
    let (_, password) = stored.split_once("password: ").unwrap();
    assert!(!printed.contains(password.trim()), "{printed}");
    assert!(stored.starts_with("email: root@example.org\n"));
    let root = rig.find("ROOT@example.org").await.unwrap();
    assert_eq!((&*root.id, root.role), ("default", Role::Admin));
    assert!(root.needs_setup);
    rig.create("ann@example.org", false, "a quiet brown deer\n")
        .await
        .unwrap();
    assert_eq!(rig.credentials(), stored);
    assert!(!rig.find("ann@example.org").await.unwrap().needs_setup);
    let short = rig.create("bob@example.org", false, "short\n").await;
    assert!(short.is_err());
    assert!(rig.create("ann@example.org", false, "").await.is_err());
}

#[cfg(unix)]
#[tokio::test]
async fn file_of_reset_password_is_private_and_replaces_link() {
    use std::os::unix::fs::{MetadataExt as _, symlink};

    let rig = rig();
    let reset = |user: Option<&str>| UsersCommand::ResetPassword {
        user: user.map(str::to_owned),
        json: false,
        file: FileArgs::default(),
    };
    let none = rig.run(reset(None), "").await.unwrap_err();
    assert!(none.to_string().contains("users create"), "{none}");
    rig.create("root@example.org", true, "a quiet brown deer\n")
        .await
        .unwrap();
    let (outside, file) = (
        rig.home.path().join("outside"),
        rig.home.path().join("admin_initial_credentials.txt"),
    );
    std::fs::write(&outside, "").unwrap();
    symlink(&outside, &file).unwrap();
    let printed = rig.run(reset(None), "").await.unwrap();
    assert!(printed.contains(&*file.to_string_lossy()), "{printed}");
    let metadata = std::fs::symlink_metadata(&file).unwrap();
    assert!(metadata.is_file());
    assert_eq!(metadata.mode() & 0o777, 0o600);
    assert_eq!(std::fs::read_to_string(&outside).unwrap(), "");
    assert!(rig.find("default").await.unwrap().needs_setup);
}

#[tokio::test]
async fn roles_and_states_change_but_last_administrator_stays() {
    let rig = rig();
    rig.create("ann@example.org", false, "").await.unwrap();
    let early = rig.run(UsersCommand::Promote(args("ann@example.org")), "");
    let early = early.await.unwrap_err();
    assert!(early.to_string().contains("users create"), "{early}");
    rig.create("root@example.org", true, "").await.unwrap();
    for (command, role, is_enabled) in [
        (
            UsersCommand::Promote(args("ann@example.org")),
            Role::Admin,
            true,
        ),
        (
            UsersCommand::Demote(args("ann@example.org")),
            Role::User,
            true,
        ),
        (
            UsersCommand::Disable(args("ann@example.org")),
            Role::User,
            false,
        ),
        (
            UsersCommand::Enable(args("ann@example.org")),
            Role::User,
            true,
        ),
    ] {
        rig.run(command, "").await.unwrap();
        let ann = rig.find("ann@example.org").await.unwrap();
        assert_eq!((ann.role, ann.is_enabled()), (role, is_enabled));
    }
    for command in [
        UsersCommand::Demote(args("default")),
        UsersCommand::Disable(args("default")),
        delete("default", true),
    ] {
        let refused = rig.run(command, "").await.unwrap_err();
        assert!(refused.to_string().contains("last enabled"), "{refused}");
    }
    assert!(
        rig.run(UsersCommand::Enable(args("bob")), "")
            .await
            .is_err()
    );
}

#[tokio::test(start_paused = true)]
async fn deletion_asks_first() {
    let rig = rig();
    rig.create("ann@example.org", false, "").await.unwrap();
    for answer in ["", "n\n"] {
        assert!(
            rig.run(delete("ann@example.org", false), answer)
                .await
                .is_err()
        );
        assert!(rig.find("ann@example.org").await.is_ok());
    }
    rig.run(delete("ann@example.org", false), "y\n")
        .await
        .unwrap();
    assert!(rig.find("ann@example.org").await.is_err());
}

#[tokio::test]
async fn list_and_audit_are_json_on_request() {
    let rig = rig();
    rig.create("ann@example.org", false, "").await.unwrap();
    rig.create("bob@example.org", false, "").await.unwrap();
    let list = UsersCommand::List {
        q: Some("ANN".to_owned()),
        limit: 10,
        json: true,
        file: FileArgs::default(),
    };
    let listed: Value = serde_json::from_str(&rig.run(list, "").await.unwrap()).unwrap();
    assert_eq!(listed.as_array().unwrap().len(), 1);
    assert_eq!(listed[0]["email"], "ann@example.org");
    assert!(!listed.to_string().contains("argon2"));
    let mut audit = AuditArgs {
        user: Some("ann@example.org".to_owned()),
        action: Some("account.created".to_owned()),
        before: None,
        limit: 10,
        json: true,
        file: FileArgs::default(),
    };
    let mut out = Vec::new();
    rig.users().audit(&audit, &mut out).await.unwrap();
    let entries: Value = serde_json::from_slice(&out).unwrap();
    assert_eq!(entries.as_array().unwrap().len(), 1, "{entries}");
    assert_eq!(entries[0]["agent"], "deerflow command line");
    audit.action = Some("nothing".to_owned());
    let refused = rig.users().audit(&audit, &mut out).await.unwrap_err();
    assert!(refused.to_string().contains("key.created"), "{refused}");
}

#[tokio::test]
async fn audit_finds_entries_of_deleted_account_by_id() {
    let rig = rig();
    let entry = NewAuditEntry::new(AuditAction::AccountDeleted, SystemClock.now()).on("gone");
    rig.stores.audit.append(entry).await.unwrap();
    let audit = AuditArgs {
        user: Some("gone".to_owned()),
        action: None,
        before: None,
        limit: 10,
        json: false,
        file: FileArgs::default(),
    };
    let mut out = Vec::new();
    rig.users().audit(&audit, &mut out).await.unwrap();
    let printed = String::from_utf8(out).unwrap();
    assert!(printed.contains("account.deleted"), "{printed}");
}

#[tokio::test]
async fn usage_shows_amounts_and_quotas() {
    let rig = rig();
    let folder = rig.home.path().join("users/ann/threads/t");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("file"), vec![0; 1 << 20]).unwrap();
    let usage = |user: Option<&str>, json| UsersCommand::Usage {
        user: user.map(str::to_owned),
        limit: 100,
        json,
        file: FileArgs::default(),
    };
    let table = rig.run(usage(None, false), "").await.unwrap();
    let row: Vec<_> = table.lines().last().unwrap().split("  ").collect();
    let row: Vec<_> = row.iter().map(|cell| cell.trim()).collect();
    let cells: Vec<_> = row.into_iter().filter(|cell| !cell.is_empty()).collect();
    let expected = [
        "ann",
        "0",
        "0",
        "7 of 9",
        "0",
        "0",
        "1.5 MiB of 2.0 MiB",
        "1.0 MiB",
    ];
    assert_eq!(cells, expected);
    let shown = rig.run(usage(Some("bob"), true), "").await.unwrap();
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(shown[0]["user_id"], "bob");
    assert_eq!(shown[0]["usage"]["threads"], json!({"used": 0, "limit": 9}));
    assert_eq!(
        shown[0]["usage"]["file_bytes"],
        json!({"used": 0, "limit": null})
    );
}
