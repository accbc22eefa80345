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
#[path = "import_tests.rs"]
mod tests;
