//! Import of the users of a DeerFlow installation.

use std::collections::HashSet;

use chrono::{DateTime, NaiveDateTime, Utc};
use deerflow_domain::accounts::{
    Account, Email, ForeignUser, PasswordHash, ProviderIdentity, Role,
};
use harness::ids::ThreadId;
use harness::runtime::actor_context::DEFAULT_USER_ID;

/// User that is not imported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RejectedUser {
    /// Id.
    pub id: String,
    /// E-mail as stored.
    pub email: String,
    /// Reason.
    pub reason: &'static str,
}

/// Accounts to import, and users that cannot be.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImportPlan {
    /// Accounts in order of creation.
    pub accounts: Vec<Account>,
    /// Rejected users.
    pub rejected: Vec<RejectedUser>,
}

/// Plans an import. Ids and hashes stay. Of users whose e-mails differ in case only, the oldest is
/// imported. The plan depends on the rows alone, so a repetition is the same.
pub fn plan_import(users: Vec<ForeignUser>) -> ImportPlan {
    let mut plan = ImportPlan::default();
    let mut candidates: Vec<(Account, String)> = Vec::new();
    for user in users {
        let email = user.email.clone();
        let id = user.id.clone();
        match account(user) {
            Ok(account) => candidates.push((account, email)),
            Err(reason) => plan.rejected.push(RejectedUser { id, email, reason }),
        }
    }
    candidates.sort_by(|(a, _), (b, _)| (a.created_at, &a.id).cmp(&(b.created_at, &b.id)));
    let mut emails = HashSet::new();
    for (account, email) in candidates {
        if emails.insert(account.email.clone()) {
            plan.accounts.push(account);
        } else {
            plan.rejected.push(RejectedUser {
                id: account.id,
                email,
                reason: "an older user has the same e-mail in another case",
            });
        }
    }
    plan
}

fn account(user: ForeignUser) -> Result<Account, &'static str> {
    // The id becomes a part of file paths.
    if ThreadId::parse(user.id.as_str()).is_err() || user.id == DEFAULT_USER_ID {
        return Err("the id is not valid");
    }
    let created_at = time(&user.created_at).ok_or("the creation time is not valid")?;
    let email = Email::parse(&user.email).map_err(|_| "the e-mail is not valid")?;
    let role = user.system_role.parse::<Role>();
    let role = role.map_err(|()| "the role is unknown")?;
    let identity = match (user.oauth_provider, user.oauth_id) {
        (Some(provider), Some(subject)) => {
            let identity = ProviderIdentity::new(provider, subject);
            Some(identity.ok_or("the identity at the provider is not valid")?)
        }
        _ => None,
    };
    let hash = user.password_hash.filter(|hash| !hash.is_empty());
    Ok(Account {
        id: user.id,
        email,
        role,
        password_hash: hash.map(PasswordHash::new),
        identity,
        needs_setup: user.needs_setup,
        disabled_at: None,
        created_at,
        updated_at: created_at,
        last_login_at: None,
    })
}

/// Parses a time with or without an offset; without one it is UTC.
fn time(text: &str) -> Option<DateTime<Utc>> {
    if let Ok(time) = DateTime::parse_from_rfc3339(text) {
        return Some(time.to_utc());
    }
    let naive = NaiveDateTime::parse_from_str(&text.replace('T', " "), "%Y-%m-%d %H:%M:%S%.f");
    naive.ok().map(|time| time.and_utc())
}

#[cfg(test)]
mod tests {
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
}
