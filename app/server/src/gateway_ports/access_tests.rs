//! Tests of the rules of roles.

use deerflow_domain::accounts::{
    AccountChange, AuditAction, InMemoryAccounts, NewAuditEntry, SessionsAfter,
};
use deerflow_domain::testkit::accounts::account;
use harness::config_file::{Environment, load_file};
use harness::testkit::at;

use super::*;

const CONFIG: &str = "\
authorization:
  enabled: true
  default_role: guest
  provider:
    use: deerflow.authz.rbac:RbacAuthorizationProvider
    config:
      roles:
        admin: {models: {allow: [admin's]}}
        user: {models: {allow: [user's]}}
        guest: {models: {allow: [guest's]}}
";

async fn access() -> ConfiguredAccess {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("config.yaml");
    std::fs::write(&path, CONFIG).unwrap();
    let environment = Environment::of(home.path(), None::<(String, String)>);
    let loaded = load_file(&path, &environment).unwrap();
    let accounts = Arc::new(InMemoryAccounts::default()).stores().accounts;
    let mut root = account("default", "root@example.org");
    root.role = Role::Admin;
    let entry = NewAuditEntry::new(AuditAction::AccountImported, at(0));
    let people = vec![root, account("ann", "ann@example.org")];
    accounts.import(people, entry).await.unwrap();
    ConfiguredAccess {
        config: ConfigHandle::new(loaded, environment),
        accounts,
    }
}

async fn model_of(access: &ConfiguredAccess, user: &str, scope: &str, source: &str) -> String {
    let actor = ActorContext {
        scopes: vec![scope.to_owned()],
        auth_source: Some(source.to_owned()),
        ..ActorContext::user(user)
    };
    let rules = access.rules_of(&actor).await.unwrap().unwrap();
    let roles = ["admin", "user", "guest"];
    let allowed = roles
        .iter()
        .filter(|role| rules.models.allows(&format!("{role}'s")));
    allowed.copied().collect()
}

#[tokio::test]
async fn role_of_account_decides() {
    let access = access().await;
    for (user, scope, source, role) in [
        ("ann", "", "session", "user"),
        // A scope of an earlier time or of a key gives no role.
        ("ann", ADMIN, "cron", "user"),
        ("default", "", "api_key", "admin"),
        ("default", ADMIN, "session", "admin"),
        ("program", "", "api_key", "guest"),
        ("program", ADMIN, "api_key", "admin"),
        ("ann", ADMIN, INTERNAL, "guest"),
        ("default", "", "channel:slack", "admin"),
    ] {
        let found = model_of(&access, user, scope, source).await;
        assert_eq!(found, role, "{user} {scope} {source}");
    }
    let promotion = AccountChange {
        role: Some(Role::Admin),
        ..AccountChange::default()
    };
    let stays = SessionsAfter::Unchanged;
    let promoted = access
        .accounts
        .change("ann", promotion, stays, vec![], at(1));
    promoted.await.unwrap();
    assert_eq!(model_of(&access, "ann", "", "session").await, "admin");
}
